import type { IncomingMessage } from 'node:http'
import { consult } from '../core/consult.js'
import { IdempotencyError } from '../core/errors.js'
import { scopeFault } from '../core/scope.js'
import type { Soon } from '../core/soon.js'

/** Says whose events a request brings: a name, or a function of the request. */
export type Source<Req extends IncomingMessage> =
  | string
  | ((request: Req) => string | null | undefined | Promise<string | null | undefined>)

/**
 * Whose events a request brings, by the rules of a scope: nothing is coerced.
 *
 * @throws IdempotencyError `scope_invalid`: nothing ran and nothing was stored.
 */
export function resolveSource<Req extends IncomingMessage>(source: Source<Req>, req: Req): Soon<string> {
  return typeof source === 'string' ? source : consult(source, req, checked, failed)
}

function checked(given: unknown): string {
  const fault = scopeFault(given)
  if (fault !== null) throw new IdempotencyError('scope_invalid', `source() answered ${fault}. ${WAY_OUT}`)
  return given as string
}

function failed(cause: unknown): IdempotencyError {
  return new IdempotencyError('scope_invalid', `source() failed. ${WAY_OUT}`, { cause })
}

const WAY_OUT =
  'It must say whose events they are, as a string of 1 to 255 characters; answer requests that have no source before ' +
  'the receiver.'
