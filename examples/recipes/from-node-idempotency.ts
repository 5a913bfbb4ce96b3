import express, { type Express, type Request, type RequestHandler } from 'express'
import { idempotency, ietfDraft } from 'once-per-key'
import { type RedisClient, RedisStore } from 'once-per-key/redis'
import { authenticate } from './merchant.js'

/** What an application that used @node-idempotency 1.0 with its defaults becomes. */
export function movedApp({ client, createPayout }: { client: RedisClient; createPayout: RequestHandler }): Express {
  const app = express()

  const once = idempotency({
    store: new RedisStore({ client, prefix: 'once:' }), // was storage and cacheKeyPrefix; you open the client
    scope: (req: Request) => req.merchantId, // new: whose key it is
    header: 'Idempotency-Key', // was idempotencyKey; of at most 255 characters, which was keyMaxLength: 256
    required: false, // was enforceIdempotency
    skip: (req) => req.path === '/health', // was skipRequest
    retentionMs: 24 * 3_600_000, // was cacheTTLMS
    inFlightWaitMs: 0, // was inProgressStrategy: { wait, maxWaitMs }
    problemStatuses: ietfDraft, // 422 for another body under the same key, as before; without this line, 409
  })
  app.post('/payouts', authenticate, express.json(), once, createPayout)
  return app
}
