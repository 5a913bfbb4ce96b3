import { consult } from './consult.js'
import { IdempotencyError, kindOf } from './errors.js'
import type { Soon } from './soon.js'

const MAX_SCOPE_CHARACTERS = 255

/** What a missing account turns into when somebody coerces it: everybody's scope by accident. */
const ACCIDENTS = new Set(['undefined', 'null', 'NaN', '[object Object]'])

/**
 * The scope of an application with a single tenant. It says so aloud, since a default would leak one merchant's answers
 * to another.
 */
export function singleTenant(): string {
  return 'single-tenant'
}

/**
 * Whose key it is: the merchant account. Nothing is coerced.
 *
 * @throws IdempotencyError `scope_invalid`: nothing ran and nothing was stored.
 */
export function resolveScope<Req>(
  scope: (request: Req) => string | null | undefined | Promise<string | null | undefined>,
  request: Req,
): Soon<string> {
  return consult(scope, request, checked, failed)
}

function checked(given: unknown): string {
  const fault = scopeFault(given)
  if (fault !== null) throw new IdempotencyError('scope_invalid', `scope() answered ${fault}. ${WAY_OUT}`)
  return given as string
}

function failed(cause: unknown): IdempotencyError {
  return new IdempotencyError('scope_invalid', `scope() failed. ${WAY_OUT}`, { cause })
}

const WAY_OUT =
  'It must name the account whose key this is, as a string of 1 to 255 characters: mount authentication before the ' +
  'middleware, and answer requests that have no account there. An application with a single tenant says `scope: singleTenant`.'

/** What is wrong with a scope, in words that follow "answered"; `null`: nothing. */
export function scopeFault(given: unknown): string | null {
  if (typeof given !== 'string') return kindOf(given)
  if (given === '') return 'an empty string'
  if (given.length > MAX_SCOPE_CHARACTERS && [...given].length > MAX_SCOPE_CHARACTERS) {
    return `more than ${MAX_SCOPE_CHARACTERS} characters`
  }
  if (ACCIDENTS.has(given)) return `the word "${given}"`
  return given.isWellFormed() ? null : 'half of a surrogate pair'
}
