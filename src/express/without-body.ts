import { withoutBody as withoutBodyOfAny } from '../http/index.js'
import type { IdempotencyRequest } from './middleware.js'

/**
 * Marks a `fingerprint` that does not use the body, so that nobody needs to have read the body. Without the mark such a
 * request is misuse (`body_not_parsed`): otherwise nobody would notice a parser that is mounted too late, and two
 * requests with different bodies would be the same.
 *
 * @example
 * // The handler streams the body; the client sends its digest.
 * idempotency({ store, scope, fingerprint: withoutBody((req) => req.get('Content-Digest') ?? null) })
 */
export const withoutBody: <Req = IdempotencyRequest>(
  fingerprint: (request: Req) => unknown,
) => (request: Req) => unknown = withoutBodyOfAny
