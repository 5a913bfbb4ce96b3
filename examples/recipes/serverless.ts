import { setTimeout as pause } from 'node:timers/promises'
import express, { type Express, type RequestHandler } from 'express'
import { idempotency, type Middleware, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

export interface FunctionParts {
  /** Outside the function, such as a RedisStore: an instance's memory is no other's, and goes with it. */
  readonly store: Store
  /** After which the platform ends the function, as it is configured there. */
  readonly timeLimitMs: number
  readonly createPayout: RequestHandler
}

/** The application of one instance of the function. */
export function functionApp({ store, timeLimitMs, createPayout }: FunctionParts): { app: Express; once: Middleware } {
  const once = idempotency({
    store,
    scope: (req) => req.merchantId,
    leaseMs: timeLimitMs, // a frozen instance renews nothing: the claim must outlast it
    maxRunMs: timeLimitMs, // nor may one that thaws keep a claim that nobody waits for
    storeTimeoutMs: Math.min(2_000, Math.floor(timeLimitMs / 4)),
  })
  const app = express()
  app.post('/payouts', authenticate, express.json(), once, createPayout)
  return { app, once }
}

/** `respond` is the platform's adapter around the application. */
export function functionHandler<Event, Reply>(
  respond: (event: Event) => Promise<Reply>,
  once: Middleware,
  patienceMs = 1_000,
) {
  return async (event: Event): Promise<Reply> => {
    const reply = await respond(event)
    // What is still under way would be frozen with the instance; a store that is away does not hold up the reply.
    const late = new AbortController()
    await Promise.race([once.idle(), pause(patienceMs, undefined, { signal: late.signal })])
    late.abort()
    return reply
  }
}
