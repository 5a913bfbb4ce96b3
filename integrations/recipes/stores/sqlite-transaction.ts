import express from 'express'
import { contextOf, idempotency, singleTenant } from 'once-per-key'
import { database, store } from './sqlite.js'

database.exec('CREATE TABLE IF NOT EXISTS payouts (id TEXT PRIMARY KEY, amount INTEGER)')
const once = idempotency({ store, scope: singleTenant, required: true })

export const app = express()
app.post('/payouts', express.json(), once, async (req, res) => {
  const context = contextOf(req)
  const id = context.deriveKey('payout')
  await store.transaction(context, (tx) => {
    tx.prepare('INSERT INTO payouts VALUES (?, ?)').run(id, req.body.amount)
    res.status(201).json({ id }) // sent after the COMMIT
  })
})
