import { createServer } from 'node:http'
import express from 'express'
import { contextOf, type IdempotencyError, idempotency, singleTenant } from 'once-per-key'
import * as fetching from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import supertest from 'supertest'
import { expect, test } from 'vitest'

/** What a route answers that asks for its context. */
async function answerOf(required: boolean, key?: string) {
  const app = express()
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, required })
  app.post('/payouts', once, (req, res) => void res.status(201).json({ key: contextOf(req).key }))
  app.use((error: IdempotencyError, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
    res.status(500).json({ code: error.code, message: error.message })
  })
  const sent = supertest(app).post('/payouts')
  const { status, body } = await (key === undefined ? sent : sent.set('Idempotency-Key', key))
  return { status, body }
}

test('a handler behind the middleware gets its context', async () => {
  expect(await answerOf(true, 'a')).toEqual({ status: 201, body: { key: 'a' } })
})

test('a request without a key has none, which is misuse unless it is refused before', async () => {
  expect(await answerOf(true)).toMatchObject({ status: 400, body: { code: 'key_missing' } })
  const { status, body } = await answerOf(false)
  expect({ status, code: body.code }).toEqual({ status: 500, code: 'context_missing' })
  expect(body.message).toContain('`required: true`')
})

test('so does one of plain node:http, whose requests have it at run time alone', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, required: true })
  const server = createServer((req, res) => once(req, res, () => void res.end(contextOf(req).key)))
  expect((await supertest(server).post('/payouts').set('Idempotency-Key', 'a')).text).toBe('a')
  // @ts-expect-error: a response has no context.
  createServer((_req, res) => contextOf(res))
})

test('so does a handler of Fetch, whose context is an argument of its own', async () => {
  const once = fetching.idempotency({ store: new MemoryStore(), scope: singleTenant, required: true })
  const handler = once((_request, idempotency) => new Response(fetching.contextOf({ idempotency }).key))
  const request = new Request('http://test/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'a' } })
  expect(await (await handler(request)).text()).toBe('a')
})
