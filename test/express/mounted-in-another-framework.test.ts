import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// `idempotency` has the same name in each entry: an import from the wrong one must not leave a route unprotected.
const ofExpress = () => idempotency({ store: new MemoryStore(), scope: () => 'acme' }) as never

const TOLD = /once-per-key\/fastify, \/hono or \/koa/

test('Fastify does not start with it as a plugin', async () => {
  const app = fastify()
  await expect(
    app
      .register(ofExpress())
      .ready()
      .then(() => 'started'),
  ).rejects.toMatchObject({
    code: 'response_unsupported',
    message: expect.stringMatching(TOLD),
  })
})

test('Hono hands its error to onError, and no handler runs', async () => {
  let runs = 0
  const app = new Hono().post('/payouts', ofExpress(), (c) => {
    runs++
    return c.text('paid')
  })
  app.onError((error, c) => c.text(error.message, 500))
  const answer = await app.request('/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
  expect(answer.status).toBe(500)
  expect(await answer.text()).toMatch(TOLD)
  expect(runs).toBe(0)
})

test('Koa emits its error, and no handler runs', async () => {
  let runs = 0
  const app = new Koa().use(ofExpress()).use(() => void runs++)
  const errors: unknown[] = []
  app.on('error', (error) => errors.push(error))
  const server = app.listen(0)
  try {
    const { port } = server.address() as { port: number }
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
    expect(answer.status).toBe(500)
    expect(errors).toMatchObject([{ message: expect.stringMatching(TOLD) }])
    expect(runs).toBe(0)
  } finally {
    server.close()
  }
})
