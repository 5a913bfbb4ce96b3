import { once as onceEvent } from 'node:events'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { proxy } from 'hono/proxy'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'

// Hono's `proxy` passes `request.signal` on, which aborts when the client leaves: the call is broken off, and its outcome is unknown. The
// signal of the run in its place, as docs/frameworks.md says, lets it go on.

test.each([
  { whose: 'request', does: 'breaks it off, and a retry calls again', calls: 2, replayed: undefined },
  { whose: 'run', does: 'does not, and a retry gets its answer', calls: 1, replayed: 'true' },
])('the signal of the $whose $does', async ({ whose, calls, replayed }) => {
  const called = gate()
  const paid = gate()
  const left = gate()
  let seen = 0
  const bank = await listen(async (_req, res) => {
    seen++
    called.open()
    await paid.opened
    res.writeHead(201).end('paid')
  })
  onTestFinished(bank.close)
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const app = new Hono()
  app.onError((_error, c) => c.text('broken off', 500))
  app.post('/payouts', once, (c) => {
    c.req.raw.signal.addEventListener('abort', () => left.open())
    const signal = c.get('idempotency')?.signal ?? null
    return proxy(`http://127.0.0.1:${bank.port}/`, whose === 'run' ? { ...c.req, signal } : { ...c.req })
  })
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  onTestFinished(() => void server.close())
  await onceEvent(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connectTo(port)
  client.send({ path: '/payouts', key: 'k' })
  await called.opened
  client.socket.resetAndDestroy()
  await left.opened
  if (whose === 'request') await once.idle()
  paid.open()
  await once.idle()
  const retry = await request(port, { path: '/payouts', key: 'k' })
  expect([retry.status, retry.header('idempotent-replayed'), seen]).toEqual([201, replayed, calls])
})
