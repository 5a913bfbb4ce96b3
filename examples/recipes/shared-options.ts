import express, { type Express, type Request, type RequestHandler } from 'express'
import { type IdempotencyEvent, idempotency, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

export interface Routes {
  readonly store: Store
  readonly onEvent: (event: IdempotencyEvent) => void
  readonly createPayout: RequestHandler
  readonly convert: RequestHandler
}

/** Routes with one set of options, and one that differs in a few. */
export function routes({ store, onEvent, createPayout, convert }: Routes): { app: Express; idle(): Promise<void> } {
  const app = express()

  const shared = { store, onEvent, scope: (req: Request) => req.merchantId }
  const once = idempotency({ ...shared })
  const onceRequired = idempotency({ ...shared, required: true, inFlightWaitMs: 5_000 })

  app.use(authenticate, express.json())
  app.post('/payouts', once, createPayout)
  app.post('/conversions', onceRequired, convert) // each route meets one of them

  const idle = async () => {
    await Promise.all([once.idle(), onceRequired.idle()])
  }
  return { app, idle }
}
