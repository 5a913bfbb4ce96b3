import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { startFaultProxy } from '../support/fault-proxy.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { startExample } from './example-process.js'
import { type Received, type Sent, send } from './payments-service.js'

let example: BuiltExample
let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
  example = await buildExample({ clients: ['redis'] })
}, 60_000)

afterAll(async () => {
  await redis.close()
  await example.remove()
})

/** Two processes on one Redis. */
async function twoProcesses() {
  const variables = { REDIS_URL: redis.url }
  return Promise.all([startExample(example, variables), startExample(example, variables)])
}

const post = ({ origin }: { readonly origin: string }, path: string, body: object, sent: Sent = {}) =>
  send(`${origin}/api/service/${path}`, { body, ...sent })

const ORDER = { amount: 1_000, currency: 'EUR' }

test('what one process creates, the other changes, and each knows the end', async () => {
  const [one, two] = await twoProcesses()
  const order = await post(one, 'order/create', ORDER)
  const { id: orderId } = order.json
  const expired = await post(two, 'order/expire', { orderId })
  expect(expired.json).toEqual({ ...order.json, status: 'expired', expiredAt: expect.any(String) })
  expect((await post(one, 'order/expire', { orderId })).json.code).toBe('order_expired')
}, 20_000)

test('a key is one operation through both: replay, mismatch, in flight, another merchant', async () => {
  const [one, two] = await twoProcesses()
  const key = randomUUID()
  const first = await post(one, 'payout/create', ORDER, { key })
  const retry = await post(two, 'payout/create', ORDER, { key })
  expect([first.status, retry.status]).toEqual([201, 201])
  expect(retry.bytes.equals(first.bytes)).toBe(true)
  expect(retry.headers.get('idempotent-replayed')).toBe('true')
  expect((await post(two, 'payout/create', { ...ORDER, amount: 1 }, { key })).json.code).toBe('mismatched')
  const theirs = await post(two, 'payout/create', ORDER, { key, apiKey: 'demo_globex' })
  expect([theirs.status, theirs.headers.get('idempotent-replayed')]).toEqual([201, null])

  const slow = randomUUID()
  const running = post(one, 'payout/create', ORDER, { key: slow, headers: { 'x-demo-delay-ms': '1000' } })
  await vi.waitFor(() => expect(one.output()).toContain(slow), { interval: 5 })
  expect((await post(two, 'payout/create', ORDER, { key: slow })).json.code).toBe('in_flight')
  expect((await running).status).toBe(201)
}, 20_000)

test('refunds that race through both processes never exceed their order', async () => {
  const [one, two] = await twoProcesses()
  const { id: orderId } = (await post(one, 'order/create', ORDER)).json
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      post(i % 2 === 0 ? one : two, 'refund/create', { orderId, amount: 100 }, { key: `${orderId} ${i}` }),
    ),
  )
  const outcomes = all.map(({ json }: Received) => json.code ?? json.status)
  expect(outcomes.filter((outcome) => outcome === 'pending')).toHaveLength(10)
  expect(outcomes.filter((outcome) => outcome === 'refund_exceeds_order')).toHaveLength(10)
}, 20_000)

test('kill -9 between the effect and its answer: after the lease the other process answers for it, once', async () => {
  const proxy = await startFaultProxy(redis.port)
  const DEMO_LEASE_MS = '3000'
  const [dying, other] = await Promise.all([
    startExample(example, { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, DEMO_LEASE_MS }),
    startExample(example, { REDIS_URL: redis.url, DEMO_LEASE_MS }),
  ])
  const { id: orderId } = (await post(other, 'order/create', ORDER)).json
  const request = [`refund/create`, { orderId, amount: 600 }, { key: randomUUID() }] as const

  // Only an answer holds its content type: the books are written by then.
  const completing = proxy.dropRequest('application/json').then(() => proxy.cut())
  const lost = post(dying, ...request).catch((error: Error) => error.name)
  await completing
  dying.child.kill('SIGKILL')
  await once(dying.child, 'close')
  // Held up for longer than the store's time limit, it has told its client: a success that is not confirmed in time is sent.
  const told = await lost
  await proxy.close()

  const early = await post(other, ...request)
  expect(early.json.code).toBe('in_flight')
  const retry = await vi.waitFor(
    async () => {
      const answer = await post(other, ...request)
      expect(answer.json).toMatchObject({ orderId, amount: 600, status: 'pending' })
      return answer
    },
    { interval: 50, timeout: 10_000 },
  )
  expect(retry.status).toBe(201)
  if (typeof told === 'string') expect(told).toBe('TypeError')
  else expect([told.status, told.bytes]).toEqual([201, retry.bytes])
  const claims = other.log().filter((line) => line.key === request[2].key && line.msg === 'claimed')
  expect(claims).toMatchObject([{ attempt: 2, previousOutcome: 'unknown' }])

  // 400 are left: the 600 went once.
  expect((await post(other, 'refund/create', { orderId, amount: 401 })).json.code).toBe('refund_exceeds_order')
  expect((await post(other, 'refund/create', { orderId, amount: 400 })).status).toBe(201)
  expect((await post(other, ...request)).bytes.equals(retry.bytes)).toBe(true)
}, 20_000)
