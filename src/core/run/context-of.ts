import { IdempotencyError } from '../errors.js'
import type { IdempotencyContext } from './context.js'

/**
 * The context of a run that a route always has: `req.idempotency`, without a check for `undefined`. For routes whose
 * middleware has `required: true`, since a request without a key has no context.
 *
 * @example
 * app.post('/payouts', once, async (req, res) => {
 *   const { deriveKey } = contextOf(req)
 *
 * @throws IdempotencyError `context_missing`: the request has none. Nothing changed.
 */
export function contextOf(request: { readonly idempotency?: IdempotencyContext | undefined }): IdempotencyContext {
  const { idempotency } = request
  if (idempotency !== undefined) return idempotency
  throw new IdempotencyError(
    'context_missing',
    'The request has no context of a run. Either it came without a key, which `required: true` refuses, or the route is not behind ' +
      'the middleware: mount it before the handler. A method that `methods` does not name, and a request that `skip` names, have none.',
  )
}
