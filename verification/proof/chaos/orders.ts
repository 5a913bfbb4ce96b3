import { randomUUID } from 'node:crypto'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import { contextOf, idempotency, type Store } from 'once-per-key'
import { authenticate, merchantOf } from '../../../examples/payments/merchants.js'
import { pause } from './faults.js'
import type { Note, RunFacts } from './journal.js'
import { storeTimeoutOf } from './service-settings.js'

/** Beside the operations of the example: an order of three steps. */
export const ORDERS = '/chaos/orders'

export interface OrdersOptions {
  readonly store: Store
  readonly leaseMs: number
  readonly unknownOutcome: 'rerun' | 'refuse'
}

/** Orders whose steps are noted; none of those who do them removes duplicates. */
export function ordersApp({ store, leaseMs, unknownOutcome }: OrdersOptions, note: (note: Note) => void) {
  const once = idempotency({
    store,
    leaseMs,
    unknownOutcome,
    storeTimeoutMs: storeTimeoutOf(leaseMs),
    scope: (req: Request) => req.merchant?.id,
    onEvent: ({ type, ...about }) => note({ what: 'told', line: { ...about, msg: type } }),
  })
  const app: Express = express()
  app.post(ORDERS, authenticate, express.json(), once, async (req: Request, res: Response) => {
    const { reference, amount } = req.body
    if (amount < 0) return void res.status(422).json({ code: 'amount_negative' })
    const context = contextOf(req)
    const { scope, key, attempt, previousOutcome } = context
    const facts: RunFacts = { scope, key, attempt, reference }
    note({ what: 'run', previousOutcome, ...facts })
    const takesMs = Number(req.header('X-Demo-Delay-Ms')) / STEPS.length
    const done: string[] = []
    for (const label of STEPS) {
      const { id } = await context.step(label, async ({ previousOutcome: told }) => {
        const step = { label, id: `${label} ${randomUUID()}`, ...facts }
        note({ what: 'step called', told, ...step })
        await pause(takesMs)
        note({ what: 'step over', ...step })
        return { id: step.id }
      })
      note({ what: 'step got', label, id, ...facts })
      done.push(id)
    }
    const id = done.join()
    note({ what: 'effect', entry: id, ...facts })
    res.status(201).json({ id, reference, merchant: merchantOf(req).id })
  })
  app.use((_error: unknown, _req: Request, res: Response, next: NextFunction) => {
    if (res.headersSent) return next()
    res.status(503).json({ code: 'order_failed' })
  })
  return { app, idle: () => once.idle() }
}

export const STEPS = ['charge', 'ship', 'mail'] as const
