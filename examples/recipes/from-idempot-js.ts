import express, { type Express, type Request, type RequestHandler } from 'express'
import { idempotency, ietfDraft, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

/** What an Express application that used idempot-js with its defaults becomes. */
export function movedApp({ store, createPayout }: { store: Store; createPayout: RequestHandler }): Express {
  const app = express()

  const once = idempotency({
    store, // one of ours, on the same Redis or Postgres
    scope: (req: Request) => req.merchantId, // new: whose key it is
    required: true, // its default; ours is false
    methods: ['POST', 'PATCH'], // the methods that it covers; ours are POST, PUT, PATCH and DELETE
    retentionMs: 24 * 3_600_000, // was ttlMs
    fingerprint: ({ query, body }) => ({ query, body: without(body, ['sentAt']) }), // was excludeFields
    storeTimeoutMs: 500, // was resilience.timeoutMs; there are no other settings for outages
    problemStatuses: ietfDraft, // 422 for another body under the same key, as before; without this line, 409
  })
  app.post('/payouts', authenticate, express.json(), once, createPayout)
  return app
}

function without(body: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
}
