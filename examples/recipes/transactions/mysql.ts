import express from 'express'
import { contextOf, idempotency, singleTenant } from 'once-per-key'
import { store } from '../stores/mysql.js'

const once = idempotency({ store, scope: singleTenant, required: true })

export const app = express()
app.post('/payouts', express.json(), once, async (req, res) => {
  const context = contextOf(req)
  const id = context.deriveKey('payout')
  await store.transaction(context, async (tx) => {
    await tx.query('INSERT INTO payouts (id, amount) VALUES (?, ?)', [id, req.body.amount])
    res.status(201).json({ id }) // sent after the COMMIT
  })
})
