import express from 'express'
import { Redis } from 'ioredis'
import { idempotency, singleTenant } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import request from 'supertest'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'

// Real servers and many connections, on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000 })

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
const store = new RedisStore({ client: redis, prefix: '', prefixMayMeetOthers: true })
afterAll(async () => {
  redis.disconnect()
  await server.close()
})
beforeEach(() => redis.flushdb())

const COMMANDS: Readonly<Record<string, (store: Store, key: string, token: string) => Promise<unknown>>> = {
  begin: async (store, key, token) => store.begin(key, claimOf(token, 'fingerprint')),
  renew: async (store, key, token) => store.renew(key, { ...ownOf(token, 'fingerprint'), leaseMs: 30_000 }),
  complete: async (store, key, token) => store.complete(key, { ...ownOf(token, 'fingerprint'), answer: ANSWER }),
  release: async (store, key, token) => store.release(key, { ...ownOf(token, 'fingerprint'), failedMs: 60_000 }),
}

const pack = (fields: unknown[]) => redis.callBuffer('EVAL', PACK, '0', JSON.stringify(fields)) as Promise<Buffer>
const PACK = `return '1' .. cmsgpack.pack(cjson.decode(ARGV[1]))`

/** Each command, of the owner and of a stranger, fails; the value and its expiry stay. */
async function leftAsItIs(message: RegExp, key = 'k'): Promise<void> {
  await redis.pexpire(key, 600_000)
  const before = await redis.dumpBuffer(key)
  for (const token of ['owner', 'stranger']) {
    for (const [name, command] of Object.entries(COMMANDS)) {
      await expect(command(store, key, token), `${name} of the ${token}`).rejects.toThrow(message)
    }
  }
  expect((await redis.dumpBuffer(key)).equals(before)).toBe(true)
  expect(await redis.pttl(key)).toBeGreaterThan(300_000)
}

describe('is a store failure for each command, and stays as it is:', () => {
  test('a record of a newer format', async () => {
    await redis.set('k', '2who knows')
    await leftAsItIs(/UNREADABLE the record is of another format/)
  })

  test('a record of a newer format that looks like one of this', async () => {
    await RECORDS.completed?.write(store, 'k')
    await redis.setrange('k', 0, '2')
    await leftAsItIs(/UNREADABLE the record is of another format/)
  })

  test.each([
    ['a hash', () => redis.hset('k', 'state', 'completed')],
    ['a list', () => redis.rpush('k', 'completed')],
    ['a set', () => redis.sadd('k', 'completed')],
    ['a stream', () => redis.xadd('k', '*', 'state', 'completed')],
  ])('a key of another type: %s', async (_name, write) => {
    await write()
    await leftAsItIs(/WRONGTYPE/)
  })

  test.each(Object.entries(RECORDS))('a record that was cut off, anywhere: %s', async (_name, { write }) => {
    await write(store, 'whole')
    const whole = (await redis.getBuffer('whole')) as Buffer
    // Each length of the fields; of a body that is all alike some do.
    const lengths = Array.from(whole.keys()).filter(
      (length) => length < 100 || length % 25 === 0 || length > whole.length - 5,
    )
    for (const length of lengths) {
      await redis.set('k', whole.subarray(0, length))
      await leftAsItIs(/UNREADABLE/)
    }
  })

  test.each(Object.entries(RECORDS))('a record with more behind it: %s', async (_name, { write }) => {
    await write(store, 'k')
    await redis.append('k', '\0')
    await leftAsItIs(/UNREADABLE the record is damaged/)
  })

  test.each([
    ['no list', 'completed'],
    ['no fields', []],
    ['no known state', ['finished', 'owner', 'fingerprint', 1, false]],
    ['a state that Lua knows', ['__index', 'owner', 'fingerprint', 1, false]],
    ['a token that is a number', ['failed', 7, 'fingerprint', 1, true]],
    ['no fingerprint', ['failed', 'owner', null, 1, true]],
    ['an attempt in digits', ['in-flight', 'owner', 'fingerprint', '1', false, 1_800_000_000_000]],
    ['an uncertainty in digits', ['failed', 'owner', 'fingerprint', 1, 0]],
    ['a lease in digits', ['in-flight', 'owner', 'fingerprint', 1, false, '1800000000000']],
    ['a field too few', ['in-flight', 'owner', 'fingerprint', 1, false]],
    ['a field too many', ['failed', 'owner', 'fingerprint', 1, false, 1]],
    ['a body of another length', ['completed', 'owner', 'fingerprint', 1, 200, '', '[]', true, 3]],
    ['headers that are a number', ['completed', 'owner', 'fingerprint', 1, 200, '', 7, true, 0]],
    ['a status that is none', ['completed', 'owner', 'fingerprint', 1, 'ok', '', '[]', true, 0]],
  ])('a record with %s', async (_name, fields) => {
    await redis.set('k', await pack(fields as unknown[]))
    await leftAsItIs(/UNREADABLE the record is damaged/)
  })

  test('a foreign string', async () => {
    for (const value of ['', '1', 'OK', '1 is not a record', '{"v":1}', '1\xdc\xff\xff', `1${'\x91'.repeat(3_000)}`]) {
      await redis.set('k', Buffer.from(value, 'latin1'))
      await leftAsItIs(/UNREADABLE/)
    }
  })
})

test.each(['nonsense', '{}', '[["a"]]', '[["a",1]]', '["ab"]', 'null'])(
  'headers that are %s fail a replay, and are not quoted',
  async (headers) => {
    await redis.set('k', await pack(['completed', 'owner', 'fingerprint', 1, 200, '', headers, true, 0]))
    await expect(store.begin('k', claimOf('stranger', 'fingerprint'))).rejects.toThrow(
      /^The headers in the record are damaged\.$/,
    )
  },
)

test('a flipped bit is an error, or a record that still has its state and its attempt: never a new key', async () => {
  for (const [name, { write }] of Object.entries(RECORDS)) {
    await write(store, 'whole')
    const whole = (await redis.getBuffer('whole')) as Buffer
    for (let bit = 0; bit < Math.min(whole.length, 80) * 8; bit++) {
      const flipped = Buffer.from(whole)
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7))
      await redis.set('k', flipped, 'PX', 600_000)
      const begun = await store.begin('k', claimOf('stranger', 'fingerprint')).catch(() => 'failure')
      expect(begun, `${name}, bit ${bit}`).not.toMatchObject({ acquired: true, attempt: 1 })
    }
  }
})

test('through the middleware it is 503 store_unavailable, and the handler idle', async () => {
  const handler = vi.fn((_req: express.Request, res: express.Response) => void res.status(201).json({}))
  const middleware = idempotency({ store, scope: singleTenant, leaseMs: 1_000, storeTimeoutMs: 250 })
  const app = express().post('/payouts', middleware, handler)
  await request(app).post('/payouts').set('Idempotency-Key', 'k').expect(201)
  const [key] = (await redis.keys('*')) as [string]
  const record = (await redis.getBuffer(key)) as Buffer

  const unreadable: [string, () => Promise<unknown>][] = [
    ['newer', () => redis.set(key, '2')],
    ['damaged', () => redis.set(key, record.subarray(0, -1))],
    ['of another type', async () => (await redis.del(key)) && redis.hset(key, 'a', 'b')],
  ]
  for (const [name, write] of unreadable) {
    await write()
    const before = await redis.dumpBuffer(key)
    const response = await request(app).post('/payouts').set('Idempotency-Key', 'k')
    expect(response.status, name).toBe(503)
    expect(response.body.code).toBe('store_unavailable')
    expect(response.headers['retry-after']).toBe('1')
    await middleware.idle()
    expect((await redis.dumpBuffer(key)).equals(before), name).toBe(true)
  }
  expect(handler).toHaveBeenCalledTimes(1)
})
