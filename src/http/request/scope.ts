import { IdempotencyError, inItsWords } from '../../core/errors.js'
import type { MaybePromise } from '../../core/maybe-promise.js'
import { scopeFault } from '../../core/record/identity.js'
import { callOption } from '../options/given-functions.js'

/**
 * The scope of an application with a single tenant. It must be chosen explicitly: as a default it would leak one
 * merchant's answers to another.
 */
export function singleTenant(): string {
  return 'single-tenant'
}

/** An option function that returns the account whose key it is. */
export type Scope<Req> = (request: Req) => string | null | undefined | Promise<string | null | undefined>

/** How error messages refer to a scope. */
export interface ScopeWords {
  readonly option: string
  /** What to do about a wrong one, in sentences. */
  readonly wayOut: string
}

/**
 * Returns a reader of the scope, by an application's option. No value is coerced. `words` is for a binding or a
 * receiver whose option has another name.
 *
 * The reader throws IdempotencyError (or rejects with it) `scope_invalid`: nothing ran and nothing was stored.
 */
export function scopeReader<Req>(
  scope: Scope<Req>,
  { option, wayOut }: ScopeWords = OF_REQUESTS,
): (request: Req) => MaybePromise<string> {
  const checked = (given: unknown): string => {
    const fault = scopeFault(given)
    if (fault === null) return given as string
    const isNumber = Number.isFinite(given) || typeof given === 'bigint'
    const its = isNumber ? `${fault}: return String(id)` : fault
    throw new IdempotencyError('scope_invalid', `${option}() returned ${its}. ${wayOut}`)
  }
  const failed = (cause: unknown) =>
    new IdempotencyError('scope_invalid', `${option}() failed${inItsWords(cause)}. ${wayOut}`, { cause })
  return (request) => callOption(scope, request, checked, failed)
}

const OF_REQUESTS: ScopeWords = {
  option: 'scope',
  wayOut:
    'It must return the account whose key this is, as a string of 1 to 255 characters: mount authentication before the ' +
    'middleware, and respond there to requests without an account. An application with a single tenant uses `scope: singleTenant`.',
}
