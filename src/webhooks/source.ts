import type { IncomingMessage } from 'node:http'
import { IdempotencyError } from '../core/errors.js'
import { scopeFault } from '../core/scope.js'

/** Says whose events a request brings: a name, or a function of the request. */
export type Source<Req extends IncomingMessage> =
  | string
  | ((request: Req) => string | null | undefined | Promise<string | null | undefined>)

/**
 * Whose events a request brings, by the rules of a scope: nothing is coerced.
 *
 * @throws IdempotencyError `scope_invalid`: nothing ran and nothing was stored.
 */
export async function resolveSource<Req extends IncomingMessage>(source: Source<Req>, req: Req): Promise<string> {
  if (typeof source === 'string') return source
  let given: unknown
  try {
    given = await source(req)
  } catch (cause) {
    throw new IdempotencyError('scope_invalid', `source() failed. ${WAY_OUT}`, { cause })
  }
  const fault = scopeFault(given)
  if (fault !== null) throw new IdempotencyError('scope_invalid', `source() answered ${fault}. ${WAY_OUT}`)
  return given as string
}

const WAY_OUT =
  'It must say whose events they are, as a string of 1 to 255 characters; answer requests that have no source before ' +
  'the receiver.'
