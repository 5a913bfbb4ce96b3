import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import express from 'express'
import express4 from 'express4'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { idempotency } from 'once-per-key'
import { idempotency as ofFastify } from 'once-per-key/fastify'
import { idempotency as ofFetch } from 'once-per-key/fetch'
import { idempotency as ofHono } from 'once-per-key/hono'
import { idempotency as ofKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/receiver'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'

// `idempotency` has the same name in each entry: an import from the wrong one must not leave a route unprotected, nor a client
// without an answer, and must say what to do.

const options = () => ({ store: new MemoryStore(), scope: () => 'acme' })

const MOUNTED: Readonly<Record<string, () => unknown>> = {
  Express: () => idempotency(options()),
  Fastify: () => ofFastify,
  Hono: () => ofHono(options()),
  Koa: () => ofKoa(options()),
  'Fetch, its once': () => ofFetch(options()),
  'Fetch, a handler': () => ofFetch(options())(async () => new Response('paid')),
  'a webhook receiver': () =>
    webhookReceiver({
      store: new MemoryStore(),
      source: 'acme',
      verify: false,
      parse: () => ({ id: '1', type: 'paid', payload: null }),
      on: { paid() {} },
    }),
}
/** All that is not at home in a framework. */
const foreignTo = (...home: readonly string[]) => Object.keys(MOUNTED).filter((name) => !home.includes(name))
const mountedOf = (name: string) => MOUNTED[name]?.() as never

const OWN_ENTRY = /once-per-key\/fastify, \/hono, \/koa or \/nest/
const told = (name: string) => ({
  code: 'response_unsupported',
  message: expect.stringMatching(name === 'a webhook receiver' ? /receiver\.fetch\(c\.req\.raw\)/ : OWN_ENTRY),
})

let runs = 0
let errors: unknown[] = []
afterEach(() => {
  expect(runs).toBe(0)
  errors = []
})

async function post(server: Server): Promise<number> {
  onTestFinished(() => void server.close())
  if (!server.listening) await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const { status } = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
  return status
}

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('%s passes its error on, and no handler runs, with that of', (_version, create) => {
  test.each(foreignTo('Express', 'a webhook receiver'))('%s', async (name) => {
    const app = create().post('/', mountedOf(name), () => void runs++)
    app.use((error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
      errors.push(error)
      res.status(500).end()
    })
    expect(await post(app.listen(0, '127.0.0.1'))).toBe(500)
    expect(errors).toMatchObject([told(name)])
  })
})

describe('Fastify does not start with a plugin that is that of', () => {
  test.each(foreignTo('Fastify'))('%s', async (name) => {
    const started = fastify()
      .register(mountedOf(name), options())
      .ready()
      .then(() => 'started')
    await expect(started).rejects.toMatchObject(told(name))
  })
})

describe('Fastify rejects, and does not end the process, where it registers the function itself, of', () => {
  const functions: Readonly<Record<string, unknown>> = {
    Express: idempotency,
    Fetch: ofFetch,
    Hono: ofHono,
    Koa: ofKoa,
  }
  test.each(Object.keys(functions))('%s', async (name) => {
    const app = fastify()
    await expect(app.register(functions[name] as never, options())).rejects.toMatchObject(told(name))
  })
})

describe('Hono hands its error to onError, and no handler runs, with that of', () => {
  test.each(foreignTo('Hono'))('%s', async (name) => {
    const app = new Hono().post('/payouts', mountedOf(name), (c) => c.text(`paid ${++runs}`))
    app.onError((error, c) => {
      errors.push(error)
      return c.text(error.message, 500)
    })
    const answer = await app.request('/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
    expect(answer.status).toBe(500)
    expect(errors).toMatchObject([told(name)])
  })
})

describe('Koa emits its error, and no handler runs, with that of', () => {
  test.each(foreignTo('Koa'))('%s', async (name) => {
    const app = new Koa().use(mountedOf(name)).use(() => void runs++)
    app.on('error', (error) => errors.push(error))
    expect(await post(app.listen(0, '127.0.0.1'))).toBe(500)
    expect(errors).toMatchObject([told(name)])
  })
})

test('Fetch’s `once.handle`, and a receiver’s `fetch`, reject what is no Request', async () => {
  await expect(ofFetch(options()).handle({} as never, async () => new Response())).rejects.toMatchObject(told('Fetch'))
  const receiver = MOUNTED['a webhook receiver']?.() as ReturnType<typeof webhookReceiver>
  await expect(receiver.fetch({} as never)).rejects.toMatchObject(told('a webhook receiver'))
})

test('on node:http, without `next`, it says how to call it, and claims nothing', async () => {
  const store = new MemoryStore()
  const middleware = idempotency({ store, scope: () => 'acme' })
  const server = createServer((req, res) => {
    try {
      middleware(req, res, undefined as never)
    } catch (error) {
      errors.push(error)
      res.writeHead(500).end()
    }
  }).listen(0, '127.0.0.1')
  expect(await post(server)).toBe(500)
  expect(errors).toMatchObject([
    { code: 'arguments_invalid', message: expect.stringContaining('once(req, res, (error) => { … })') },
  ])
  expect(await middleware.inspect({ scope: 'acme', key: 'k' })).toBeNull()
})
