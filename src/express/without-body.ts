import { withoutBody as withoutBodyOfAny } from '../http/index.js'
import type { IdempotencyRequest } from './middleware.js'

/**
 * Says of a `fingerprint` that it does not look at the body, so it is right although nobody has read the body yet. Without
 * it such a request is misuse (`body_not_parsed`): a parser that is mounted too late would go unnoticed, and two requests
 * with different bodies would be the same.
 *
 * @example
 * // The handler streams the body; the client tells its digest.
 * idempotency({ store, scope, fingerprint: withoutBody((req) => req.get('Content-Digest') ?? null) })
 */
export const withoutBody: <Req = IdempotencyRequest>(
  fingerprint: (request: Req) => unknown,
) => (request: Req) => unknown = withoutBodyOfAny
