import express from 'express'
import { contextOf, idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

const once = idempotency({
  store: new MemoryStore(), // for one process
  scope: singleTenant, // whose key it is; with several customers: (req) => req.customerId
  required: true, // a request without a key is refused
})

const app = express()
app.post('/payouts', express.json(), once, async (req, res) => {
  const id = contextOf(req).deriveKey('payout') // the same UUID on every attempt
  console.log(`paying ${req.body.amount} (${id})`) // replace it with the call to your bank
  res.status(201).json({ id, amount: req.body.amount })
})

app.listen(process.env.PORT ?? 3000, (error) => {
  if (error) throw error // the port is taken
  console.log('ready')
})
