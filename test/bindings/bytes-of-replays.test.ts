import { Buffer } from 'node:buffer'
import express, { type Response } from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { idempotency as onExpress, singleTenant } from 'once-per-key'
import { idempotency as onFastify } from 'once-per-key/fastify'
import { idempotency as onKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'

// The memory store keeps a large body as one buffer, which replays share as long as nobody else sees it. What surrounds the middleware
// may change the bytes of a response in place.

const LARGE = 100_000
const createOptions = () => ({ store: new MemoryStore(), scope: singleTenant })

function shiftLetters(bytes: Buffer): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (bytes[i] ?? 0) + 1
}

async function expectEqualReplays(port: number): Promise<void> {
  for (const isReplay of [false, true, true]) {
    const headers = { 'Idempotency-Key': 'k', 'Content-Type': 'application/json' }
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: '{"amount":1}' })
    expect(response.headers.has('idempotent-replayed')).toBe(isReplay)
    expect(await response.text()).toBe('b'.repeat(LARGE))
  }
}

test('Express: a wrapped `end` changes its own bytes alone', async () => {
  const app = express()
  app.use((_req, res, next) => {
    const { end } = res
    res.end = ((...args: Parameters<Response['end']>) => {
      if (Buffer.isBuffer(args[0])) shiftLetters(args[0])
      return end.apply(res, args)
    }) as Response['end']
    next()
  })
  app.post('/', express.json(), onExpress(createOptions()), (_req, res) => {
    res.send(Buffer.alloc(LARGE, 'a'))
  })
  const { port, close } = await listen(app)
  onTestFinished(close)
  await expectEqualReplays(port)
})

test('Koa: middleware in front changes its own bytes alone', async () => {
  const app = new Koa()
  app.use(async (ctx, next) => {
    await next()
    if (Buffer.isBuffer(ctx.body)) shiftLetters(ctx.body)
  })
  app.use(bodyParser()).use(onKoa(createOptions()))
  app.use((ctx) => {
    ctx.body = Buffer.alloc(LARGE, 'a')
  })
  const { port, close } = await listen(app.callback())
  onTestFinished(close)
  await expectEqualReplays(port)
})

test('Fastify: a hook behind the plugin changes its own bytes alone', async () => {
  const app = Fastify()
  await app.register(onFastify, createOptions())
  app.addHook('onSend', async (_request, _reply, payload) => {
    if (Buffer.isBuffer(payload)) shiftLetters(payload)
    return payload
  })
  app.post('/', async (_request, reply) => reply.send(Buffer.alloc(LARGE, 'a')))
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  await expectEqualReplays((app.server.address() as { readonly port: number }).port)
})
