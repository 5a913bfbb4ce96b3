import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { request } from '../support/raw-client.js'

// The Response of @hono/node-server takes a body with a status that has none, and throws when it is read. So what worked without
// the middleware was 500 with it, and the handler ran again.

test.each([204, 205, 304])('a %i with an empty body is stored and sent like one with none', async (status) => {
  let runs = 0
  const app = new Hono()
  app.post('/payouts', idempotency({ store: new MemoryStore(), scope: singleTenant }), () => {
    runs++
    return new Response('', { status, statusText: 'Paid', headers: { 'X-Receipt': '17' } })
  })
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  for (const replayed of [undefined, 'true']) {
    const { status: told, body, header } = await request(port, { path: '/payouts', key: 'k' })
    expect([told, body.toString(), header('X-Receipt')]).toEqual([status, '', '17'])
    expect(header('Idempotent-Replayed')).toBe(replayed)
  }
  expect(runs).toBe(1)
})
