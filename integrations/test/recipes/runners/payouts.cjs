// What the tests beside it try: payouts that are protected, and payouts that are not.
const express = require('express')
const { idempotency } = require('once-per-key')
const { MemoryStore } = require('once-per-key/memory')

exports.payouts = ({ isProtected }) => {
  const paid = new Set()
  const app = express().use(express.json())
  if (isProtected) app.use(idempotency({ store: new MemoryStore(), scope: () => 'acme' }))
  app.post('/payouts', (req, res) => {
    paid.add(req.idempotency?.deriveKey('bank') ?? `payout ${paid.size}`)
    res.status(201).json({ paid: true })
  })
  return { app, effects: () => paid.size }
}
