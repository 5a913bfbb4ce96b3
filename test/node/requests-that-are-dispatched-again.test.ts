import type { IncomingMessage, ServerResponse } from 'node:http'
import express from 'express'
import express4 from 'express4'
import Koa from 'koa'
import { idempotency, singleTenant } from 'once-per-key'
import { idempotency as forFastify } from 'once-per-key/fastify'
import { idempotency as forKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'
import { request } from '../support/raw-client.js'
import { FASTIFYS } from '../versions/fastify.js'

// A request that is dispatched again, by the framework's own means, has another request object in Koa and Fastify. It then ran into its own
// claim, and the client of the first request got 409.

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown
type Errors = unknown[]

/** Each serves `/first`, which is dispatched again as `/second`, and tells of the errors. */
const FRAMEWORKS: readonly {
  readonly name: string
  start(errors: Errors): Promise<{ port: number; close(): Promise<void> }>
}[] = [
  { name: 'Express 5', start: (errors) => onExpress(express, errors) },
  { name: 'Express 4', start: (errors) => onExpress(express4 as unknown as typeof express, errors) },
  {
    name: 'Koa',
    start(errors) {
      const app = new Koa()
      app.on('error', (error) => errors.push(error.code))
      app.use(forKoa({ store: new MemoryStore(), scope: singleTenant }))
      app.use(async (ctx) => {
        if (ctx.url === '/second') ctx.body = 'paid'
        else {
          ctx.req.url = '/second'
          ctx.respond = false
          await (app.callback() as Listener)(ctx.req, ctx.res)
        }
      })
      return listen(app.callback())
    },
  },
  ...FASTIFYS.map(({ name, create }) => ({
    name,
    async start(errors: Errors) {
      const app = create()
      app.setErrorHandler((error: { code?: unknown }, _request, reply) => {
        errors.push(error.code)
        return reply.code(500).send('failed')
      })
      await app.register(forFastify, { store: new MemoryStore(), scope: singleTenant })
      app.post('/first', (request, reply) => {
        reply.hijack()
        request.raw.url = '/second'
        app.routing(request.raw, reply.raw)
      })
      app.post('/second', () => 'paid')
      await app.ready()
      return listen((req, res) => app.routing(req, res))
    },
  })),
]

function onExpress(create: typeof express, errors: Errors) {
  const app = create()
  app.use(idempotency({ store: new MemoryStore(), scope: singleTenant }))
  app.post('/first', (req, res) => {
    req.url = '/second'
    ;(app as unknown as Listener)(req, res)
  })
  app.post('/second', (_req, res) => void res.send('paid'))
  app.use(((error, _req, res, _next) => {
    errors.push(error.code)
    res.status(500).send('failed')
  }) as express.ErrorRequestHandler)
  return listen(app as never)
}

describe.each(FRAMEWORKS)('in $name', ({ start }) => {
  test('a request that is dispatched again is misuse, and the handler does not run', async () => {
    const errors: Errors = []
    const { port, close } = await start(errors)
    onTestFinished(close)
    const reply = await request(port, { path: '/first', key: 'order-1' })
    expect([reply.status, errors]).toEqual([500, ['mounted_twice']])
  })

  test('without a key it passes', async () => {
    const errors: Errors = []
    const { port, close } = await start(errors)
    onTestFinished(close)
    const reply = await request(port, { path: '/first' })
    expect([reply.status, reply.body.toString(), errors]).toEqual([200, 'paid', []])
  })
})
