import express, { type Express, type Request, type RequestHandler } from 'express'
import { agenticCommerce, idempotency, type Store } from 'once-per-key'

export interface Checkout {
  /** Sets `req.merchantId`. */
  readonly authenticate: RequestHandler
  readonly store: Store
  readonly create: RequestHandler
  readonly update: RequestHandler
  readonly complete: RequestHandler
  readonly cancel: RequestHandler
}

/** The checkout endpoints of the Agentic Commerce Protocol, with its rules for keys. */
export function checkoutSessions({ authenticate, store, create, update, complete, cancel }: Checkout): Express {
  const once = idempotency({
    store,
    scope: (req: Request) => req.merchantId,
    profile: agenticCommerce,
    documentation: 'https://developer.example.com/idempotency',
  })
  return express()
    .use(authenticate, express.json())
    .post('/checkout_sessions', once, create)
    .post('/checkout_sessions/:id', once, update)
    .post('/checkout_sessions/:id/complete', once, complete)
    .post('/checkout_sessions/:id/cancel', once, cancel)
}
