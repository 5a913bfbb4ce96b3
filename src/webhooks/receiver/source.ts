import type { IncomingMessage } from 'node:http'
import type { MaybePromise } from '../../core/index.js'
import { type Scope, scopeReader } from '../../http/index.js'

/** Who owns the events of a request: a name, or a function of the request. */
export type Source<Req extends IncomingMessage> = string | Scope<Req>

/**
 * Returns a reader of the source, which follows the rules of a scope: no value is coerced.
 *
 * The reader throws IdempotencyError (or rejects with it) `scope_invalid`: nothing ran and nothing was stored.
 */
export function sourceReader<Req extends IncomingMessage>(source: Source<Req>): (req: Req) => MaybePromise<string> {
  return typeof source === 'string' ? () => source : scopeReader(source, { option: 'source', wayOut: WAY_OUT })
}

const WAY_OUT =
  'It must return a string of 1 to 255 characters that says who owns the events; respond to requests without a source ' +
  'before the receiver.'
