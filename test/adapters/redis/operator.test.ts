import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { heardDuring } from '../../support/redis-monitor.js'
import { startRedis } from '../../support/redis-server.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'
import { age } from './ageing.js'

const server = await startRedis('--maxmemory-policy', 'noeviction')
const redis = new Redis(server.port)
const store = new RedisStore({ client: redis, prefix: '', prefixMayMeetOthers: true })
const send = (_key: string, [name = '', ...args]: readonly (string | Buffer)[]) =>
  redis.callBuffer(String(name), ...args)
const retentionMs = 3_600_000
const RESOLVED = { token: 'operator', attempt: 1, answer: null, retentionMs }

beforeEach(() => redis.flushdb())
afterAll(async () => {
  redis.disconnect()
  await server.close()
})

/** A record whose owner died: its lease is over. */
async function loseOwner(key: string): Promise<void> {
  await store.begin(key, claimOf('owner', 'fingerprint'))
  await age(send, key, 30_000)
}

describe.each(Object.entries(RECORDS))('inspect of a record: %s', (_name, { write, shown }) => {
  test('shows it, and leaves its bytes and its expiry as they are', async () => {
    await write(store, 'k')
    const before = await Promise.all([redis.getBuffer('k'), redis.pexpiretime('k')])
    const record = { ...shown, ...(shown.state === 'in-flight' && { leaseRemainingMs: expect.any(Number) }) }
    expect(structuredClone(await store.inspect('k'))).toEqual(record)
    expect(await Promise.all([redis.getBuffer('k'), redis.pexpiretime('k')])).toEqual(before)
  })
})

test('inspect writes nothing where there is nothing', async () => {
  expect(await store.inspect('k')).toBeNull()
  expect(await redis.dbsize()).toBe(0)
})

test.each(['2', '1 is not a record', 'OK'])(
  'a record that cannot be read (%s) is an error, and left as it is',
  async (bytes) => {
    await redis.set('k', bytes, 'PX', 600_000)
    await expect(store.inspect('k')).rejects.toThrow(/UNREADABLE/)
    for (const answer of [null, ANSWER]) {
      await expect(store.resolve('k', { ...RESOLVED, answer })).rejects.toThrow(/UNREADABLE/)
    }
    expect(await redis.get('k')).toBe(bytes)
  },
)

test.each([
  ['failed', null, { state: 'failed', fingerprint: null, attempt: 1, uncertain: false }],
  ['completed', ANSWER, { state: 'completed', fingerprint: 'fingerprint', attempt: 1, answer: ANSWER }],
])('a record that was resolved as %s is one of version 1, and expires with its retention', async (_as, answer, due) => {
  await loseOwner('k')
  expect(await store.resolve('k', { ...RESOLVED, answer })).toEqual({ ok: true })
  expect(structuredClone(await store.inspect('k'))).toEqual(due)
  expect((await redis.getBuffer('k'))?.subarray(0, 1).toString()).toBe('1')
  const left = await redis.pttl('k')
  expect(left).toBeGreaterThan(retentionMs - 60_000)
  expect(left).toBeLessThanOrEqual(retentionMs)
})

test('a record is never kept for less time than before, however short the retention of the operator', async () => {
  await loseOwner('k')
  const before = await redis.pexpiretime('k')
  await store.resolve('k', { ...RESOLVED, retentionMs: 1_000 })
  expect(Math.abs((await redis.pexpiretime('k')) - before)).toBeLessThanOrEqual(1)
})

test('each of them is one command, on one key', async () => {
  await loseOwner('k')
  await store.inspect('k')
  await store.resolve('other', RESOLVED) // Now the server knows the scripts.
  const heard = await heardDuring(redis, async () => {
    await store.inspect('k')
    await store.resolve('k', RESOLVED)
  })
  const asked = heard.filter(({ source }) => source !== 'lua').map(({ name, args }) => `${name} ${args[2]}`)
  expect(asked).toEqual(['evalsha k', 'evalsha k'])
  expect(await redis.keys('*')).toEqual(['k'])
})

test('where maxmemory is reached an operator still looks and resolves', async () => {
  for (const key of ['failed', 'completed']) await loseOwner(key)
  await redis.config('SET', 'maxmemory', '1')
  await expect(store.begin('new', claimOf('t1'))).rejects.toThrow(/OOM/)
  expect(await store.inspect('failed')).toMatchObject({ state: 'in-flight' })
  expect(await store.resolve('failed', RESOLVED)).toEqual({ ok: true })
  const answer = { ...ANSWER, body: Buffer.alloc(100_000, 1) }
  expect(await store.resolve('completed', { ...RESOLVED, answer })).toEqual({ ok: true })
  const begun = await store.begin('completed', claimOf('t1', 'fingerprint'))
  const body = !begun.acquired && begun.record.state === 'completed' && begun.record.answer?.body
  expect(body && answer.body.equals(body)).toBe(true)
  await redis.config('SET', 'maxmemory', '0')
})

test('the owner that was lost is fenced, whatever it sends', async () => {
  for (const answer of [null, ANSWER]) {
    const key = answer === null ? 'failed' : 'completed'
    await loseOwner(key)
    await store.resolve(key, { ...RESOLVED, answer })
    const record = { state: key, attempt: 1 }
    const own = ownOf('owner', 'fingerprint')
    expect(await store.renew(key, { ...own, leaseMs: 1_000 })).toMatchObject({ ok: false, record })
    expect(await store.complete(key, { ...own, answer: { ...ANSWER, status: 200 } })).toMatchObject({
      ok: false,
      record,
    })
    expect(await store.release(key, { ...own, failedMs: 60_000 })).toMatchObject({ ok: false, record })
    expect(await store.inspect(key)).toMatchObject({ ...record, ...(answer && { answer: { status: 201 } }) })
  }
})
