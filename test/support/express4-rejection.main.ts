// A process with a handler on Express 4 whose promise is rejected. It prints the port; with `survives`, it lives on after unhandled rejections.
import type { AddressInfo } from 'node:net'
import express from 'express4'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

if (process.argv[2] === 'survives') process.on('unhandledRejection', () => {})
const once = idempotency({ store: new MemoryStore(), scope: singleTenant, required: true })
const app = express()
app.post('/payouts', once, async () => {
  throw new Error('the bank did not answer')
})
const server = app.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit(0))
