import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { expect, test } from 'vitest'
import { createPausedStore } from '../support/paused-store.js'

// A held response that had ended looked sent to Node, and `server.close()` hangs up on connections that wait for nothing:
// a deployment cost the clients of that moment their answers.
test('a server that closes while an answer is being stored still sends it', async () => {
  const { store, completing, stored } = createPausedStore()
  const app = express()
  const protect = idempotency({ store, scope: singleTenant })
  app.post('/', protect, (_req, res) => void res.json({ paid: true }))
  const server = createServer(app).listen(0)
  const { port } = server.address() as AddressInfo

  const answer = fetch(`http://localhost:${port}/`, { method: 'POST', headers: { 'Idempotency-Key': 'a' } })
  await completing.opened
  server.close()
  stored.open()

  expect((await answer).status).toBe(200)
  server.closeAllConnections()
})
