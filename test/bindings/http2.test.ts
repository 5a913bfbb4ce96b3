import { once as emitted } from 'node:events'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { idempotency, singleTenant } from 'once-per-key'
import { idempotency as ofFastify } from 'once-per-key/fastify'
import { idempotency as ofHono } from 'once-per-key/hono'
import { idempotency as ofKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'

const options = () => ({ store: new MemoryStore(), scope: singleTenant })

type Listener = (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => unknown
type Opened = { readonly server: http2.Http2Server; readonly errors: unknown[] }

/** Those that hold a response of `node:http`. */
const HOLDING: Readonly<Record<string, () => Promise<Opened>>> = {
  async 'the middleware'() {
    const once = idempotency(options())
    const errors: unknown[] = []
    const listener: Listener = (req, res) => {
      once(req as never, res as never, (error) => {
        if (error !== undefined) errors.push(error)
        res.writeHead(error === undefined ? 201 : 500).end('done')
      })
    }
    return { server: http2.createServer(listener), errors }
  },
  async Fastify() {
    const app = fastify({ http2: true })
    const errors: unknown[] = []
    app.setErrorHandler((error, _request, reply) => {
      errors.push(error)
      return reply.code(500).send('done')
    })
    await app.register(ofFastify, options())
    app.post('/', (_request, reply) => reply.code(201).send('done'))
    await app.ready()
    return { server: app.server, errors }
  },
  async Koa() {
    const app = new Koa()
    const errors: unknown[] = []
    app.on('error', (error) => errors.push(error))
    app.use(ofKoa(options()))
    app.use((ctx) => {
      ctx.status = 201
      ctx.body = 'done'
    })
    return { server: http2.createServer(app.callback() as never), errors }
  },
}

async function client(server: http2.Http2Server) {
  server.listen(0, '127.0.0.1')
  await emitted(server, 'listening')
  const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    session.destroy()
    server.close()
  })
  return async (headers: http2.OutgoingHttpHeaders) => {
    const stream = session.request({ ':method': 'POST', ':path': '/', ...headers }, { endStream: true })
    const [{ ':status': status, 'idempotent-replayed': replayed }] = await emitted(stream, 'response')
    const body = Buffer.concat(await stream.toArray()).toString()
    return { status, replayed, body }
  }
}

test.each(Object.entries(HOLDING))('%s says over HTTP/2 what to do, and runs nothing', async (_name, open) => {
  const { server, errors } = await open()
  const post = await client(server)
  expect((await post({ 'idempotency-key': 'k' })).status).toBe(500)
  expect(errors).toEqual([
    expect.objectContaining({
      code: 'response_unsupported',
      message: expect.stringContaining(
        '(for example, from HTTP/2 or a test double), so it cannot be held until it is stored. Serve HTTP/1.1, and terminate HTTP/2 at the proxy.',
      ),
    }),
  ])
  expect((await post({})).status).toBe(201)
})

test('Hono, which holds no response of Node, replays over HTTP/2', async () => {
  let runs = 0
  const app = new Hono()
  app.post('/', ofHono(options()), (c) => c.text(`run ${++runs}`, 201))
  const post = await client(http2.createServer(getRequestListener(app.fetch) as never))
  const answered = { status: 201, body: 'run 1' }
  expect(await post({ 'idempotency-key': 'k' })).toEqual({ ...answered, replayed: undefined })
  expect(await post({ 'idempotency-key': 'k' })).toEqual({ ...answered, replayed: 'true' })
})
