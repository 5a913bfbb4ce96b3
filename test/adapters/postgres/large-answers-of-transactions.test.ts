import { once as event } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { fastify } from 'fastify'
import Koa from 'koa'
import { type IdempotencyContext, singleTenant } from 'once-per-key'
import { idempotency as onFastify } from 'once-per-key/fastify'
import { idempotency as onKoa } from 'once-per-key/koa'
import type { PoolClient } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openWithEffects } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { store, query } = await openWithEffects()

const OPTIONS = { store, scope: singleTenant, maxAnswerBytes: 4, onEvent: () => {} }
const LARGE = 'large'

/** The work inserts a row, and answers with the body in the framework's way. Resolves with the port. */
const FRAMEWORKS = {
  async Koa(body: () => unknown): Promise<number> {
    const app = new Koa().on('error', () => {}).use(onKoa(OPTIONS))
    app.use((ctx) =>
      paid(ctx.idempotency, () => {
        ctx.body = body()
      }),
    )
    const server = app.listen(0, '127.0.0.1')
    onTestFinished(() => void server.close().closeAllConnections())
    await event(server, 'listening')
    return (server.address() as AddressInfo).port
  },
  async Fastify(body: () => unknown): Promise<number> {
    const app = fastify({ forceCloseConnections: true })
    onTestFinished(() => app.close())
    await app.register(onFastify, OPTIONS)
    app.post('/', async (request, reply) => {
      await paid(request.idempotency, () => void reply.type('text/plain').send(body()))
      return reply
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return (app.server.address() as AddressInfo).port
  },
}

function paid(context: IdempotencyContext | undefined, answer: () => void): Promise<void> {
  return store.transaction(context, async (tx) => {
    await (tx as PoolClient).query("INSERT INTO effects VALUES ('e1')")
    answer()
  })
}

async function post(port: number) {
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
  return { status: response.status, body: await response.text() }
}

const effects = async () => (await query('SELECT id FROM effects')).length

test.each(Object.entries(FRAMEWORKS))(
  'on %s, a whole answer that is too large to keep is sent, and completes without it',
  async (_name, serve) => {
    const port = await serve(() => LARGE)
    expect(await post(port)).toEqual({ status: 200, body: LARGE })
    expect(await post(port)).toEqual({ status: 409, body: expect.stringContaining('answer_not_kept') })
    expect(await effects()).toBe(1)
  },
)

test.each(Object.entries(FRAMEWORKS))(
  'on %s, a stream that is too large to keep is misuse, and is rolled back, even if it has one piece',
  async (_name, serve) => {
    const port = await serve(() => Readable.from([LARGE], { objectMode: false }))
    expect((await post(port)).status).toBe(500)
    expect(await effects()).toBe(0)
  },
)
