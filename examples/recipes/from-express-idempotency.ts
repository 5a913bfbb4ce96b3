import express, { type Express, type Request, type RequestHandler } from 'express'
import { idempotency, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

/** What an application that used express-idempotency 1.0 with its defaults becomes. */
export function movedApp({ store, createPayout }: { store: Store; createPayout: RequestHandler }): Express {
  const app = express()

  const once = idempotency({
    store, // was dataAdapter
    scope: (req: Request) => req.merchantId, // new: whose key it is
    header: 'Idempotency-Key', // was idempotencyKeyHeader
    isSuccess: ({ status }) => status >= 200 && status <= 299, // was responseValidator; these were its default
    fingerprint: ({ query, body }) => ({ query, body }), // was intentValidator: a value, not a comparison
    problemStatuses: { mismatched: 417 }, // the status that its clients know; without this line, 409
  })
  // Without isHit(), since a replay skips the handler, and without reportError(), since what failed runs again.
  app.post('/payouts', authenticate, express.json(), once, createPayout)
  return app
}
