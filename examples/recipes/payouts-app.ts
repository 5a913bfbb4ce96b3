import express, { type Express } from 'express'
import { contextOf, idempotency, type Middleware, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

export interface Bank {
  transfer(amount: number, idempotencyKey: string): Promise<{ readonly id: string }>
}

/** An application as its tests want it: what it needs is given to it. */
export function payoutsApp({ store, bank }: { store: Store; bank: Bank }): { app: Express; once: Middleware } {
  const app = express()
  const once = idempotency({ store, scope: (req) => req.merchantId, required: true })
  app.post('/payouts', authenticate, express.json(), once, async (req, res) => {
    const { id } = await bank.transfer(req.body.amount, contextOf(req).deriveKey('bank transfer'))
    res.status(201).json({ id })
  })
  return { app, once }
}
