import { EventEmitter } from 'node:events'
import { createMocks } from 'node-mocks-http'
import { type IdempotencyEvent, idempotency, type Middleware } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/receiver'
import { expect, test } from 'vitest'

// The requests of node-mocks-http have no `rawHeaders`. Reading them was a TypeError, even for a request without a key.

function protection(options: { readonly required?: boolean; readonly store?: MemoryStore } = {}) {
  const events: IdempotencyEvent['type'][] = []
  const store = new MemoryStore()
  const once = idempotency({ store, scope: () => 'acme', ...options, onEvent: ({ type }) => void events.push(type) })
  return { events, once: once as Middleware }
}

/** What `next` was called with, and the doubles. */
async function pass(once: Middleware, headers: Record<string, string>) {
  const { req, res } = createMocks({ method: 'POST', url: '/payouts', headers, body: { amount: 5_000 } })
  const error = await new Promise<unknown>((resolve) => {
    once(req as never, res as never, resolve)
    if (res.writableEnded) resolve('answered')
  })
  return { error, req, res }
}

test('a double without a key passes untouched', async () => {
  const { once, events } = protection()
  const { error, req, res } = await pass(once, {})
  expect([error, 'idempotency' in req, res._isEndCalled(), events]).toEqual([undefined, false, false, []])
})

test('the response of a double with a key cannot be held: that is misuse, and the key is free', async () => {
  const { once, events } = protection()
  const { error } = await pass(once, { 'Idempotency-Key': 'order-1' })
  expect(error).toMatchObject({ code: 'response_unsupported' })
  expect(events).toEqual(['claimed', 'failed'])
})

test('a refusal is written into the double', async () => {
  const { once } = protection({ required: true })
  const { error, res } = await pass(once, {})
  expect([error, res.statusCode, JSON.parse(res._getBuffer().toString())]).toMatchObject([
    'answered',
    400,
    { code: 'key_missing' },
  ])
})

test('a webhook receiver reads the body that a double has as bytes, and a parsed one is misuse', async () => {
  const delivered: string[] = []
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'test',
    verify: false,
    parse: (raw) => JSON.parse(raw.toString()) as { id: string; type: string; payload: unknown },
    on: { paid: ({ id }: { id: string }) => void delivered.push(id) },
  })
  const receive = async (body: object) => {
    const { req, res } = createMocks({ method: 'POST', url: '/hook', body }, { eventEmitter: EventEmitter })
    return new Promise<unknown>((resolve) => {
      res.on('end', () => resolve(res.statusCode))
      receiver(req as never, res as never, resolve)
    })
  }
  const event = { id: 'evt_1', type: 'paid' }
  expect(await receive(Buffer.from(JSON.stringify(event)))).toBe(200)
  expect(await receive(event)).toMatchObject({ code: 'raw_body_consumed' })
  expect(delivered).toEqual(['evt_1'])
})
