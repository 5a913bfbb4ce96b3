import { randomUUID } from 'node:crypto'
import compression from 'compression'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import helmet from 'helmet'
import { idempotency, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

export interface Parts {
  readonly store: Store
  /** Answers 403 to those who may not make payouts. */
  readonly mayPayOut: RequestHandler
  readonly createPayout: RequestHandler
}

/** An application with each kind of middleware in its place. */
export function orderedApp({ store, mayPayOut, createPayout }: Parts): Express {
  const app = express()
  const once = idempotency({ store, scope: (req) => req.merchantId })

  // Before it, what each response has of its own, replays included: a request id, security headers, an encoding.
  app.use(requestId, helmet(), compression({ threshold: 0 }))
  app.post(
    '/payouts',
    authenticate, // who asks: the scope
    mayPayOut, // a replay skips the handler, but not this
    express.json(), // the body is part of what is compared
    once,
    createPayout,
  )
  app.use(sendProblem) // last: its 4xx frees the key; after its 5xx the outcome counts as unknown
  return app
}

const requestId: RequestHandler = (_req, res, next) => {
  res.setHeader('X-Request-Id', randomUUID())
  next()
}

const sendProblem: ErrorRequestHandler = (error, _req, res, next) => {
  if (res.headersSent) return next(error)
  res.status(error.status ?? 500).json({ error: error.expose ? error.message : 'Something went wrong.' })
}
