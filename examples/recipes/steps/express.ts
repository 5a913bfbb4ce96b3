import express, { type Express } from 'express'
import { contextOf, idempotency, type Store, singleTenant } from 'once-per-key'
import { fulfil, type Others } from './order.js'

export function ordersApp(store: Store, others: Others): Express {
  const once = idempotency({ store, scope: singleTenant, required: true })
  const app = express()
  app.post('/orders', express.json(), once, async (req, res) => {
    res.status(201).json(await fulfil(contextOf(req), req.body, others))
  })
  return app
}
