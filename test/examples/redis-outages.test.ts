import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, type TestContext, test, vi } from 'vitest'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { startFaultProxy } from '../support/fault-proxy.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { type ExampleProcess, startExample } from './example-process.js'
import { type Received, send } from './payments-service.js'

type AtEnd = TestContext['onTestFinished']

let example: BuiltExample

beforeAll(async () => {
  example = await buildExample({ clients: ['redis'] })
}, 60_000)

afterAll(() => example.remove())

const BODY = { amount: 100, currency: 'EUR' }
const PATIENTLY = { interval: 20, timeout: 10_000 }

test.concurrent('Redis down at the start: it serves, says so, and is whole when Redis is there', async ({
  onTestFinished: atEnd,
}) => {
  const redis = await redisForTest(atEnd)
  redis.signal('SIGKILL')
  const service = await startExample(example, { REDIS_URL: redis.url }, atEnd)
  await expectAway(service)
  expect(events(service)).toEqual(['records and books are in redis', 'redis is away'])
  expect(service.log()[1]).toMatchObject({ level: 40, reason: expect.stringContaining('ECONNREFUSED') })
  await expectRefusals(service)

  await redis.restart()
  await expectBack(service)
  expect((await payout(service, randomUUID())).status).toBe(201)
}, 30_000)

test.concurrent('Redis down later, and back: one line when it goes, one when it is back, and keys go on', async ({
  onTestFinished: atEnd,
}) => {
  const redis = await redisForTest(atEnd)
  const service = await startExample(example, { REDIS_URL: redis.url }, atEnd)
  expect(await health(service)).toEqual({ status: 'ok' })
  const key = randomUUID()
  const first = await payout(service, key)
  expect(first.status).toBe(201)

  redis.signal('SIGKILL')
  await expectAway(service)
  await expectRefusals(service, key)
  await redis.restart()
  await expectBack(service)
  const replay = await payout(service, key)
  expect(replay.headers.get('idempotent-replayed')).toBe('true')
  expect(replay.bytes.equals(first.bytes)).toBe(true)
  expect(events(service)).toEqual(['records and books are in redis', 'redis is away', 'redis is back'])
  // A line for each request that was refused, and none for what was tried again behind it.
  const failed = service.log().filter((line) => line.msg === 'store_failed')
  expect(failed).toMatchObject([{ command: 'begin', key }])
}, 30_000)

test.concurrent('Redis paused, then awake: requests are refused in time, and what was refused can be sent again', async ({
  onTestFinished: atEnd,
}) => {
  const redis = await redisForTest(atEnd)
  const service = await startExample(example, { REDIS_URL: redis.url, DEMO_LEASE_MS: '4000' }, atEnd)
  redis.signal('SIGSTOP')
  const key = randomUUID()
  // Nobody else would end these requests: that they end is the test.
  await expectRefusals(service, key)
  await expectAway(service)

  redis.signal('SIGCONT')
  await expectBack(service)
  const retry = await vi.waitFor(async () => {
    const answer = await payout(service, key)
    expect(answer.status).toBe(201)
    return answer
  }, PATIENTLY)
  expect(retry.headers.get('idempotent-replayed')).toBeNull()
  expect(service.log().filter((line) => line.key === key && line.msg === 'claimed')).toHaveLength(1)
  expect(events(service)).toEqual(['records and books are in redis', 'redis is away', 'redis is back'])
}, 30_000)

// Alone: beside the others' servers, a busy machine may itself take the second after which Redis counts as away.
test('a slow Redis is not away: answers come late, and the log has nothing to say', async ({
  onTestFinished: atEnd,
}) => {
  const redis = await redisForTest(atEnd)
  const proxy = await startFaultProxy(redis.port)
  atEnd(() => proxy.close())
  const service = await startExample(example, { REDIS_URL: `redis://127.0.0.1:${proxy.port}` }, atEnd)
  proxy.delay(50)
  expect((await payout(service, randomUUID())).status).toBe(201)
  expect((await payout(service)).status).toBe(201)
  expect(await health(service)).toEqual({ status: 'ok' })
  expect(service.log().map((line) => line.msg)).toEqual(['records and books are in redis', 'claimed', 'completed'])
}, 30_000)

test.concurrent.for(['SIGKILL', 'SIGSTOP'] as const)(
  'it stops in bounded time, with exit code 0, although Redis is gone by %s and a key is still claimed',
  { timeout: 30_000 },
  async (signal, { onTestFinished: atEnd }) => {
    const redis = await redisForTest(atEnd)
    const service = await startExample(example, { REDIS_URL: redis.url }, atEnd)
    const key = randomUUID()
    const running = payout(service, key, { 'x-demo-delay-ms': '1000' })
    await vi.waitFor(() => expect(service.output()).toContain(key), PATIENTLY)
    redis.signal(signal)
    service.child.kill('SIGTERM')
    expect((await running).json.code).toBe('books_unavailable')
    expect(await service.exit()).toBe(0)
    expect(service.log().slice(-2)).toMatchObject([
      { level: 40, msg: 'some keys were not completed or released: their leases will end' },
      { msg: 'stopped' },
    ])
  },
)

test.concurrent('it stops at once when nothing is pending, and tells Redis goodbye', async ({
  onTestFinished: atEnd,
}) => {
  const redis = await redisForTest(atEnd)
  const service = await startExample(example, { REDIS_URL: redis.url }, atEnd)
  expect((await payout(service, randomUUID())).status).toBe(201)
  service.child.kill('SIGTERM')
  expect(await service.exit()).toBe(0)
  const told = service.log().map((line) => line.msg)
  expect(told).toEqual(['records and books are in redis', 'claimed', 'completed', 'stopping', 'stopped'])
}, 30_000)

test.concurrent('a Redis that may drop records: one warning', async ({ onTestFinished: atEnd }) => {
  const redis = await redisForTest(atEnd, '--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru')
  const service = await startExample(example, { REDIS_URL: redis.url }, atEnd)
  const conversion = { sellAmount: 100, sellCurrency: 'EUR', buyCurrency: 'USD' }
  for (const key of [randomUUID(), randomUUID()]) {
    await payout(service, key)
    await send(`${service.origin}/api/service/fx/execute`, { body: conversion, key })
  }
  const warnings = () => service.log().filter((line) => line.msg === 'eviction_policy')
  await vi.waitFor(() => expect(warnings()).toMatchObject([{ level: 40, policy: 'allkeys-lru' }]), PATIENTLY)
}, 30_000)

test.concurrent('a password opens Redis, a wrong one is told once, and neither reaches the log', async ({
  onTestFinished: atEnd,
}) => {
  const redis = await redisForTest(atEnd)
  const admin = new Redis(redis.port)
  await admin.config('SET', 'requirepass', 'right-secret')
  admin.disconnect()
  const at = `127.0.0.1:${redis.port}`
  const [open, shut] = await Promise.all([
    startExample(example, { REDIS_URL: `redis://:right-secret@${at}` }, atEnd),
    startExample(example, { REDIS_URL: `redis://:wrong-secret@${at}` }, atEnd),
  ])
  expect((await payout(open, randomUUID())).status).toBe(201)
  await expectRefusals(shut)
  await expectAway(shut)
  expect(events(shut)).toEqual(['records and books are in redis', 'redis is away'])
  expect(shut.output()).toContain('WRONGPASS')
  for (const { output } of [open, shut]) expect(output()).not.toContain('-secret')
}, 30_000)

/** Concurrent tests end by their own contexts. */
async function redisForTest(atEnd: AtEnd, ...args: readonly string[]): Promise<RedisServer> {
  const redis = await startRedis(...args)
  atEnd(() => redis.close())
  return redis
}

function payout({ origin }: ExampleProcess, key?: string, headers = {}): Promise<Received> {
  return send(`${origin}/api/service/payout/create`, { body: BODY, headers, ...(key !== undefined && { key }) })
}

async function health({ origin }: ExampleProcess): Promise<unknown> {
  const { status, json } = await send(`${origin}/health`, { method: 'GET', apiKey: '' })
  expect(status).toBe(200)
  return json
}

function expectAway(service: ExampleProcess): Promise<void> {
  return vi.waitFor(async () => expect(await health(service)).toEqual({ status: 'degraded', redis: 'away' }), PATIENTLY)
}

function expectBack(service: ExampleProcess): Promise<void> {
  return vi.waitFor(async () => expect(await health(service)).toEqual({ status: 'ok' }), PATIENTLY)
}

/** With a key, without one, and the list: 503 in one shape. */
async function expectRefusals(service: ExampleProcess, key: string = randomUUID()): Promise<void> {
  const list = send(`${service.origin}/operations`, { method: 'GET' })
  const refusals = await Promise.all([payout(service, key), payout(service), list])
  expect(refusals.map(({ status, json }) => `${status} ${json.code}`)).toEqual([
    '503 store_unavailable',
    '503 books_unavailable',
    '503 books_unavailable',
  ])
  for (const { headers } of refusals) {
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(headers.get('retry-after')).toBe('1')
  }
}

/** What the log says of Redis. */
function events(service: ExampleProcess): unknown[] {
  return service
    .log()
    .map((line) => line.msg)
    .filter((msg) => String(msg).includes('redis'))
}
