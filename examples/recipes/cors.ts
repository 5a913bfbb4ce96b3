import cors from 'cors'
import express, { type Express, type RequestHandler } from 'express'
import { idempotency, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

const origins = ['https://shop.example', 'https://office.example']

/** An application for clients in browsers of other origins. */
export function browserApp({ store, createPayout }: { store: Store; createPayout: RequestHandler }): Express {
  const app = express()
  const once = idempotency({ store, scope: (req) => req.merchantId })

  const allowBrowsers = cors({
    origin: origins,
    allowedHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'Repeatability-First-Sent'],
    exposedHeaders: ['Date', 'Idempotent-Replayed', 'Retry-After', 'X-Should-Retry'],
  })
  app.use(allowBrowsers) // first: a preflight has no credentials, and refusals must be readable too
  app.post('/payouts', authenticate, express.json(), once, createPayout)
  return app
}
