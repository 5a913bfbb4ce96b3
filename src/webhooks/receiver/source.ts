import type { IncomingMessage } from 'node:http'
import type { MaybePromise } from '../../core/index.js'
import { type Scope, scopeReader } from '../../http/index.js'

/** Says whose events a request brings: a name, or a function of the request. */
export type Source<Req extends IncomingMessage> = string | Scope<Req>

/**
 * Reads whose events a request brings, by the rules of a scope: nothing is coerced.
 *
 * The reader throws IdempotencyError (or rejects with it) `scope_invalid`: nothing ran and nothing was stored.
 */
export function sourceReader<Req extends IncomingMessage>(source: Source<Req>): (req: Req) => MaybePromise<string> {
  return typeof source === 'string' ? () => source : scopeReader(source, { option: 'source', wayOut: WAY_OUT })
}

const WAY_OUT =
  'It must say whose events they are, as a string of 1 to 255 characters; answer requests that have no source before ' +
  'the receiver.'
