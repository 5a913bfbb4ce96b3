import type { AddressInfo } from 'node:net'
import { type HttpBindings, serve } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { gate } from '../support/gate.js'
import { request } from '../support/raw-client.js'

// A handler may write to Node's response, and tell so by RESPONSE_ALREADY_SENT. That was stored as an empty 200, and replayed as one; and it
// was made anew, which @hono/node-server then sent too: a response that was still being written was destroyed.

test('an answer that was written to Node arrives whole, and is not replayed as another one', async () => {
  const settled = gate()
  let runs = 0
  const once = idempotency({
    store: new MemoryStore(),
    scope: singleTenant,
    onEvent: ({ type }) => void (type === 'completed' && settled.open()),
  })
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.post('/payouts', once, async ({ env: { outgoing } }) => {
    runs++
    outgoing.writeHead(201, { 'Content-Type': 'text/plain' }).write('pa')
    void settled.opened.then(() => new Promise(setImmediate)).then(() => outgoing.end('id'))
    return RESPONSE_ALREADY_SENT
  })
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const first = await request(port, { path: '/payouts', key: 'k' })
  expect([first.status, first.body.toString()]).toEqual([201, 'paid'])
  const retry = await request(port, { path: '/payouts', key: 'k' })
  expect([retry.status, retry.json()]).toEqual([409, expect.objectContaining({ code: 'answer_not_kept' })])
  expect(runs).toBe(1)
})
