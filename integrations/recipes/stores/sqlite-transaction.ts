import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { database, store } from './sqlite.js'

database.exec('CREATE TABLE IF NOT EXISTS payouts (id TEXT PRIMARY KEY, amount INTEGER)')
const once = idempotency({ store, scope: singleTenant, required: true })

export const app = express()
app.post('/payouts', express.json(), once, async (req, res) => {
  const id = req.idempotency?.deriveKey('payout')
  await store.transaction(req.idempotency, (tx) => {
    tx.prepare('INSERT INTO payouts VALUES (?, ?)').run(id, req.body.amount)
    res.status(201).json({ id }) // sent after the COMMIT
  })
})
