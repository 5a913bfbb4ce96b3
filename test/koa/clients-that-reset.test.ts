import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { serveKoa } from '../bindings/served.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'

// Koa watches the connection. Where a client reset it, Koa answered with an error page, because the held response looked as if its
// client were there: the run counted as failed while its handler was paying, and a retry paid at the same time.

test.each([
  { what: 'while its handler runs', isStream: false },
  { what: 'while its body is read', isStream: true },
])('a client that resets the connection $what changes nothing', async ({ isStream }) => {
  const running = gate()
  const reset = gate<NodeJS.ErrnoException>()
  const paid = gate()
  let runs = 0
  async function* body() {
    running.open()
    await paid.opened
    yield 'paid'
  }
  const { port, idle } = await serveKoa({
    async handler(ctx) {
      runs++
      ctx.app.once('error', reset.open)
      ctx.type = 'text/plain'
      if (isStream) {
        ctx.body = Readable.from(body(), { objectMode: false })
        return
      }
      running.open()
      await paid.opened
      ctx.body = 'paid'
    },
  })
  const client = connectTo(port)
  client.send({ path: '/', key: 'k' })
  await running.opened
  client.socket.resetAndDestroy()
  expect((await reset.opened).code).toBe('ECONNRESET')
  expect((await request(port, { path: '/', key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
  paid.open()
  await idle()
  const replay = await request(port, { path: '/', key: 'k' })
  expect([replay.status, replay.body.toString(), replay.header('idempotent-replayed'), runs]).toEqual([
    200,
    'paid',
    'true',
    1,
  ])
})
