import express, { type Express, type RequestHandler } from 'express'
import { idempotency, type Store } from 'once-per-key'
import { authenticate } from '../merchant.js'
import { refuseInvalid } from './refuse-invalid.js'

/** An application whose handlers validate what they get, and throw. */
export function validatingApp({ store, createPayout }: { store: Store; createPayout: RequestHandler }): Express {
  const app = express()
  const once = idempotency({ store, scope: (req) => req.merchantId })
  app.post('/payouts', authenticate, express.json(), once, createPayout)
  app.use(refuseInvalid) // after the routes: a client error frees the key, and a corrected request may follow
  return app
}
