import { createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { hmacSha256, webhookReceiver } from 'once-per-key/receiver'
import { webhookReceiver as documented } from 'once-per-key/webhooks'
import request from 'supertest'
import { expect, test } from 'vitest'
import { gate } from '../support/gate.js'

const SECRET = 'a secret of the sender'
const EVENT = JSON.stringify({ id: 'evt_1', type: 'paid', amount: 100 })
const signature = (body: string) => createHmac('sha256', SECRET).update(body).digest('hex')

function start(handler: () => unknown = () => {}) {
  let runs = 0
  let verified = 0
  const store = new MemoryStore()
  const verify = hmacSha256({ header: 'X-Signature', secrets: [SECRET] })
  const receiver = webhookReceiver({
    store,
    source: (_: IncomingMessage | Request) => 'shop',
    verify(raw, headers) {
      verified++
      return verify(raw, headers)
    },
    parse: (raw) => {
      const { id, type, ...payload } = JSON.parse(raw.toString())
      return { id, type, payload }
    },
    on: {
      paid() {
        runs++
        return handler()
      },
    },
    maxBodyBytes: 1_000,
    onEvent: () => {},
  })
  return { receiver, store, runs: () => runs, verified: () => verified }
}

function delivery(body = EVENT, init: RequestInit = {}): Request {
  const headers = { 'X-Signature': signature(body), 'Content-Type': 'application/json' }
  return new Request('http://shop.test/hooks', { method: 'POST', headers, body, ...init })
}

test('a Fetch delivery is handled once, and verified on its raw bytes, once each time', async () => {
  const { receiver, runs, verified } = start()
  const statuses = [await receiver.fetch(delivery()), await receiver.fetch(delivery())].map(({ status }) => status)
  expect([statuses, runs(), verified()]).toEqual([[200, 200], 1, 2])
})

test('a delivery that one form has handled is a repeat for the other', async () => {
  const { receiver, runs } = start()
  const app = express().use(receiver)
  const post = (body: string) => request(app).post('/hooks').set('X-Signature', signature(body)).type('json').send(body)
  const other = EVENT.replace('evt_1', 'evt_2')
  await post(EVENT).expect(200)
  expect((await receiver.fetch(delivery())).status).toBe(200)
  expect((await receiver.fetch(delivery(other))).status).toBe(200)
  await post(other).expect(200)
  expect(runs()).toBe(2)
})

test.each([
  {
    name: 'a wrong signature',
    sent: () => delivery(EVENT, { headers: { 'X-Signature': signature('else') } }),
    is: 401,
  },
  { name: 'another method', sent: () => new Request('http://shop.test/hooks'), is: 405 },
  { name: 'a body that is too large', sent: () => delivery(JSON.stringify('x'.repeat(1_000))), is: 413 },
  { name: 'a content coding', sent: () => delivery(EVENT, { headers: { 'Content-Encoding': 'gzip' } }), is: 415 },
  { name: 'what is no JSON', sent: () => delivery('{'), is: 400 },
])('$name is $is, as a problem, and nothing runs', async ({ sent, is }) => {
  const { receiver, runs } = start()
  const response = await receiver.fetch(sent())
  expect([response.status, response.headers.get('Content-Type')]).toEqual([is, 'application/problem+json'])
  expect(await response.json()).toMatchObject({ status: is })
  expect(runs()).toBe(0)
})

test('a handler that throws is 500, and the next delivery runs', async () => {
  let fails = true
  const { receiver, runs } = start(() => {
    if (fails) throw new Error('The database is away')
  })
  expect((await receiver.fetch(delivery())).status).toBe(500)
  fails = false
  expect((await receiver.fetch(delivery())).status).toBe(200)
  expect(runs()).toBe(2)
})

test.each([204, 205, 304])('an operator’s answer with a status that has no body is sent: %i', async (status) => {
  const { receiver, store } = start(() => Promise.reject(new Error('Nobody knows')))
  expect((await receiver.fetch(delivery())).status).toBe(500)
  const operator = idempotency({ store, scope: singleTenant })
  const name = { namespace: 'webhook', scope: 'shop', key: 'evt_1', attempt: 1 } as const
  expect(await operator.resolve(name, { completed: { status } })).toEqual({ ok: true })
  expect((await receiver.fetch(delivery())).status).toBe(status)
})

test('the platform waits for a handler whose sender has left, and for what is still to be stored', async () => {
  const { opened, open } = gate()
  const { receiver } = start(() => opened)
  const pending: Promise<void>[] = []
  const leaving = new AbortController()
  const receiving = receiver.fetch(delivery(EVENT, { signal: leaving.signal }), {
    waitUntil: (one) => void pending.push(one),
  })
  await expect.poll(() => pending.length).toBe(2)
  leaving.abort()
  open()
  await Promise.all(pending)
  await receiver.idle()
  expect((await receiving).status).toBe(200)
})

test('a body that was read before is misuse', async () => {
  const { receiver } = start()
  const sent = delivery()
  await sent.text()
  await expect(receiver.fetch(sent)).rejects.toMatchObject({ code: 'raw_body_consumed' })
})

test('so is a body that somebody is reading', async () => {
  const { receiver } = start()
  const sent = delivery()
  sent.body?.getReader()
  await expect(receiver.fetch(sent)).rejects.toMatchObject({ code: 'raw_body_consumed' })
})

test('the payments service’s receiver has it too: a type in the path must be the event’s', async () => {
  const receiver = documented({
    store: new MemoryStore(),
    source: 'payments',
    verify: false,
    on: {},
    onEvent: () => {},
  })
  const body = JSON.stringify({ id: 'evt_1' })
  const url = 'http://shop.test/api/service/webhook-event/merchant_updated'
  const headers = { 'Content-Type': 'application/json' }
  expect((await receiver.fetch(new Request(url, { method: 'POST', headers, body }))).status).toBe(400)
})
