import express, { type Express, type RequestHandler } from 'express'
import { idempotency, type Store } from 'once-per-key'
import { z } from 'zod'
import { authenticate } from '../merchant.js'
import { validateBody } from './validate-body.js'

const payout = z.object({ amount: z.int().positive() })

/** An application that validates requests in front of the middleware. */
export function validatingApp({ store, createPayout }: { store: Store; createPayout: RequestHandler }): Express {
  const app = express()
  const once = idempotency({ store, scope: (req) => req.merchantId })
  app.post('/payouts', authenticate, express.json(), validateBody(payout.parse), once, createPayout)
  return app
}
