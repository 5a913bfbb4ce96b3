import { Hono } from 'hono'
import { type IdempotencyEvent, idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { gate } from '../support/gate.js'

// Reading Hono's response makes an empty one: a handler that forgot to return its response, or to await next(), had its retries
// answered with an empty 200 for a day.

test('a handler that does not return its response has failed as in Hono alone', async () => {
  const { app, once, events } = protection()
  app.post('/payouts', once, (async (c: { json(body: unknown): Response }) => void c.json({ paid: true })) as never)
  for (const attempt of [1, 2]) {
    expect(await post(app)).toEqual([500, expect.stringMatching(/^Context is not finalized/), null])
    expect(events.at(-1)).toMatchObject({ type: 'failed', uncertain: true, attempt })
  }
})

test('middleware that does not await next() has failed, though the handler goes on', async () => {
  const { app, once, events } = protection()
  const goOn = gate()
  const hasEnded = gate()
  app.post('/payouts', once, (async (_c: unknown, next: () => Promise<void>) => void next()) as never, async (c) => {
    await goOn.opened
    hasEnded.open()
    return c.text('paid', 201)
  })
  expect(await post(app)).toEqual([500, expect.stringMatching(/^Context is not finalized/), null])
  expect(events.map(({ type }) => type)).toEqual(['claimed', 'failed'])
  goOn.open()
  await hasEnded.opened
})

function protection() {
  const events: IdempotencyEvent[] = []
  const onEvent = (event: IdempotencyEvent) => void events.push(event)
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, onEvent })
  const app = new Hono()
  app.onError((error, c) => c.text(error.message, 500))
  return { app, once, events }
}

async function post(app: Hono) {
  const response = await app.request('/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
  return [response.status, await response.text(), response.headers.get('Idempotent-Replayed')]
}
