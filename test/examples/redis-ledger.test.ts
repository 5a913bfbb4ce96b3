import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { Books, Ledger } from '../../examples/payments/ledger.js'
import { redisLedger } from '../../examples/payments/redis-ledger.js'
import { gate } from '../support/gate.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { openGround, type RedisGround } from './redis-ground.js'

let server: RedisServer
let one: RedisGround
let two: RedisGround
let merchant = ''

beforeAll(async () => {
  server = await startRedis()
  one = await openGround(server)
  two = await openGround(server)
})

beforeEach(() => {
  merchant = `mer_${randomUUID()}`
})

afterEach(() => void vi.useRealTimers())

afterAll(async () => {
  await Promise.all([one.close(), two.close()])
  await server.close()
})

const account = (id: string, name = 'Reserve') => ({ id, name, currency: 'EUR', createdAt: '2026-01-01' }) as const

const names = (ledger: Ledger, ...ids: string[]) =>
  ledger.transaction(merchant, (books) => Promise.all(ids.map(async (id) => (await books.get('subaccount', id))?.name)))

async function append(books: Books, id: string, text: string): Promise<void> {
  const before = await books.get('subaccount', id)
  books.put('subaccount', account(id, (before?.name ?? '') + text))
}

test('what one connection has written, the other reads; another merchant does not', async () => {
  await one.ledger.transaction(merchant, async (books) => books.put('subaccount', account('sub_1', 'Zürich')))
  expect(await names(two.ledger, 'sub_1')).toEqual(['Zürich'])
  expect(await two.ledger.transaction('mer_other', (books) => books.get('subaccount', 'sub_1'))).toBeUndefined()
  await two.ledger.transaction(merchant, async (books) => books.delete('subaccount', 'sub_1'))
  expect(await names(one.ledger, 'sub_1')).toEqual([undefined])
})

test('a transaction sees what it has written itself, and nothing of it stays if it throws', async () => {
  await one.ledger.transaction(merchant, async (books) => books.put('subaccount', account('sub_1')))
  const failing = one.ledger.transaction(merchant, async (books) => {
    books.put('subaccount', account('sub_2'))
    books.delete('subaccount', 'sub_1')
    expect(await books.get('subaccount', 'sub_1')).toBeUndefined()
    expect(await books.get('subaccount', 'sub_2')).toEqual(account('sub_2'))
    throw new Error('in the middle')
  })
  await expect(failing).rejects.toThrow('in the middle')
  expect(await names(two.ledger, 'sub_1', 'sub_2')).toEqual(['Reserve', undefined])
})

test('a transaction whose ground has changed is done again on the new one', async () => {
  const read = gate()
  const go = gate()
  let runs = 0
  const slow = one.ledger.transaction(merchant, async (books) => {
    runs++
    await append(books, 'sub_1', 'slow')
    read.open()
    await go.opened
  })
  await read.opened
  await two.ledger.transaction(merchant, (books) => append(books, 'sub_1', 'fast '))
  go.open()
  await slow
  expect([runs, await names(one.ledger, 'sub_1')]).toEqual([2, ['fast slow']])
})

test('a refusal that rests on what never was at one moment is not given', async () => {
  const both = (text: string) =>
    two.ledger.transaction(merchant, async (books) => {
      for (const id of ['sub_1', 'sub_2']) books.put('subaccount', account(id, text))
    })
  await both('old')
  const read = gate()
  const go = gate()
  const reader = one.ledger.transaction(merchant, async (books) => {
    const first = await books.get('subaccount', 'sub_1')
    read.open()
    await go.opened
    const second = await books.get('subaccount', 'sub_2')
    if (first?.name !== second?.name) throw new Error('they differ')
    return second?.name
  })
  await read.opened
  await both('new')
  go.open()
  expect(await reader).toBe('new')
})

test('of 40 transactions at once on two connections, none is lost and none is half', async () => {
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      (i % 2 === 0 ? one : two).ledger.transaction(merchant, async (books) => {
        await append(books, 'sub_1', 'x')
        await append(books, 'sub_2', 'x')
      }),
    ),
  )
  expect(await names(one.ledger, 'sub_1', 'sub_2')).toEqual(['x'.repeat(40), 'x'.repeat(40)])
})

test('an entry that is kept until a time is gone then, the others stay', async () => {
  const keptUntil = new Date(Date.now() + 3_600_000).toISOString()
  await one.ledger.transaction(merchant, async (books) => {
    books.put('outcome', { id: 'out_1', result: {}, keptUntil })
    books.put('subaccount', account('sub_1'))
  })
  const redis = new Redis(server.port)
  const expiries = [`outcome:out_1`, `subaccount:sub_1`].map((name) =>
    redis.pexpiretime(`payments-books:{${merchant}}:${name}`),
  )
  expect(await Promise.all(expiries)).toEqual([Date.parse(keptUntil), -1])
  redis.disconnect()
})

test('its keys have a prefix of their own, beside the records', async () => {
  await one.ledger.transaction(merchant, async (books) => books.put('subaccount', account('sub_1')))
  const redis = new Redis(server.port)
  const keys = await redis.keys('*')
  redis.disconnect()
  expect(keys.length).toBeGreaterThan(0)
  for (const key of keys) expect(key).toMatch(/^payments-books:\{mer_/)
})

test.each([
  ['reading', false, (books: Books) => books.get('subaccount', 'sub_1')],
  ['writing', true, async (books: Books) => books.put('subaccount', account('sub_1'))],
] as const)(
  'a Redis that does not answer %s: unavailable in the end; may have committed: %s',
  async (_at, may, work) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const silent = { get: () => new Promise(() => {}), eval: () => new Promise(() => {}) } as unknown as Redis
    const failure = redisLedger(silent)
      .transaction(merchant, async (books) => void (await work(books)))
      .catch((error) => error)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await failure).toMatchObject({ status: 503, code: 'books_unavailable', mayHaveCommitted: may })
  },
)

test('what the log is told of a failure holds no entry', async () => {
  const error = Object.assign(new Error('Connection is closed'), { command: { name: 'eval', args: ['secret'] } })
  const broken = { eval: () => Promise.reject(error) } as unknown as Redis
  const failing = redisLedger(broken).transaction(merchant, async (books) => books.put('subaccount', account('sub_1')))
  const failure = await failing.catch((error: Error) => error)
  expect(failure).toMatchObject({ reason: 'Connection is closed' })
  expect(JSON.stringify({ ...failure })).not.toContain('secret')
  expect((failure as Error).cause).toBeUndefined()
})
