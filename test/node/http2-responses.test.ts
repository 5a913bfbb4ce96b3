import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'
import Koa from 'koa'
import { type IdempotencyEvent, idempotency, singleTenant } from 'once-per-key'
import * as onFastify from 'once-per-key/fastify'
import * as onKoa from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'

// A response that cannot be held, such as one of HTTP/2, threw between the claim and the handler: the key stayed in flight,
// with its lease renewed for nobody, until `maxRunMs` was over.

test('a response of HTTP/2 is misuse, passed to next, and its key is free', async () => {
  const errors: unknown[] = []
  const events: IdempotencyEvent[] = []
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, onEvent: (event) => events.push(event) })
  const server = http2.createServer((req, res) => {
    once(req as never, res as never, (error) => {
      errors.push(error)
      res.statusCode = error === undefined ? 200 : 500
      res.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  const client = http2.connect(`http://localhost:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  const pay = (headers: object) => payOver(client, headers)

  expect(await pay({ 'idempotency-key': 'k' })).toBe(500)
  expect(await pay({ 'idempotency-key': 'k' })).toBe(500)
  await once.idle()
  // The handler has not run, so the failure is certain.
  expect(events).toMatchObject(
    Array(2)
      .fill([{ type: 'claimed' }, { type: 'failed', uncertain: false }])
      .flat(),
  )
  expect(errors).toEqual(Array(2).fill(expect.objectContaining({ code: 'response_unsupported' })))

  expect(await pay({})).toBe(200)
})

/** The status of a payout. */
function payOver(client: http2.ClientHttp2Session, headers: object): Promise<number | undefined> {
  return new Promise((resolve) => {
    const stream = client.request({ ':method': 'POST', ':path': '/', ...headers })
    stream.on('response', ({ ':status': status }) => resolve(status))
    stream.end()
  })
}

async function onFastifyOverHttp2(onEvent: (event: IdempotencyEvent) => void, run: () => void) {
  const app = fastify({ http2: true, forceCloseConnections: true })
  onTestFinished(() => app.close())
  await app.register(onFastify.idempotency, { store: new MemoryStore(), scope: singleTenant, onEvent })
  app.post('/', async () => run())
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}

async function onKoaOverHttp2(onEvent: (event: IdempotencyEvent) => void, run: () => void) {
  const app = new Koa()
  app.silent = true
  app.use(onKoa.idempotency({ store: new MemoryStore(), scope: singleTenant, onEvent }))
  app.use(run)
  const server = http2.createServer(app.callback())
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

test.each([
  { name: 'Fastify', start: onFastifyOverHttp2 },
  { name: 'Koa', start: onKoaOverHttp2 },
])('$name over HTTP/2: the handler does not run, and the failure is certain', async ({ start }) => {
  const events: IdempotencyEvent[] = []
  let runs = 0
  const port = await start(
    (event) => events.push(event),
    () => void runs++,
  )
  const client = http2.connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => client.destroy())
  expect(await payOver(client, { 'idempotency-key': 'k' })).toBe(500)
  expect(events).toMatchObject([{ type: 'claimed' }, { type: 'failed', uncertain: false }])
  expect(runs).toBe(0)
})
