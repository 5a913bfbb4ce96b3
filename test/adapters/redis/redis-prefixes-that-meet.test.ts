import { Redis } from 'ioredis'
import { RedisStore, type SendCommand } from 'once-per-key/redis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { buildStorageKey } from '../../../src/core/record/identity.js'
import { startRedis } from '../../support/redis-server.js'
import { claimOf, ownOf } from '../claims.js'

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
afterAll(async () => {
  redis.disconnect()
  await server.close()
})
beforeEach(() => redis.flushdb())

const MEETING = [
  '',
  'once',
  'once:billing:',
  'once/billing:',
  ':',
  '::',
  'a:b',
  'ends in a letter',
  'half of a pair \ud83d',
]
const APART = [
  'once-per-key:',
  'once:',
  'payments/',
  'shop:payments/',
  'shop:{payments}',
  'Zahlungen für ',
  'a|b|',
  '%:',
]

// `once:` in the namespace `billing` and `once:billing:` write the same keys: one merchant was given another's answer.
test.each(MEETING)('the prefix %j, which could meet the records of another, is refused', (prefix) => {
  const build = () => new RedisStore({ client: redis, prefix })
  expect(build).toThrow(expect.objectContaining({ code: 'options_invalid' }))
  expect(build).toThrow(
    /prefix: expected a word and a colon, such as 'payments:', or a text that ends in another character/,
  )
})

test.each(APART)('the prefix %j is taken as it is', async (prefix) => {
  await new RedisStore({ client: redis, prefix }).begin('acme:k', claimOf('t'))
  expect(await redis.keys('*')).toEqual([`${prefix}acme:k`])
})

test.each(MEETING.slice(0, -1))('what 0.1.0 wrote under %j is read, where one says so', async (prefix) => {
  const store = new RedisStore({ client: redis, prefix, prefixMayMeetOthers: true })
  await store.begin('acme:k', claimOf('t'))
  expect(await redis.keys('*')).toEqual([`${prefix}acme:k`])
  expect(await store.renew('acme:k', { ...ownOf('t'), leaseMs: 1_000 })).toEqual({ ok: true })
})

describe('two stores', () => {
  /** Every text of up to five of these signs. */
  const prefixes = ['']
  for (const prefix of prefixes)
    if (prefix.length < 5) prefixes.push(...['a', '-', ':', '/'].map((sign) => prefix + sign))
  const accepted = new Set(prefixes.filter(isAccepted))

  /** Each prefix and a longer one that begins with it: others never meet. */
  const pairs = prefixes.flatMap((longer) =>
    Array.from(longer, (_, length) => ({ prefix: longer.slice(0, length), rest: longer.slice(length), longer })),
  )
  /** Whether a key of the longer one is also one of the shorter: what its parts say makes no difference. */
  const meet = (rest: string) =>
    [buildStorageKey({ scope: 'a', key: 'a' }), buildStorageKey({ namespace: 'webhook', scope: 'a', key: 'a' })].some(
      (key) => STORAGE_KEY.test(rest + key),
    )

  test('of different prefixes never write the same key, whatever namespace, scope and key are', () => {
    expect(accepted.size).toBeGreaterThan(100)
    const both = pairs.filter(({ prefix, longer }) => accepted.has(prefix) && accepted.has(longer))
    expect(both.length).toBeGreaterThan(100)
    expect(both.filter(({ rest }) => meet(rest))).toEqual([])
  })

  test('whose prefixes were not looked at do', () => {
    expect(pairs.filter(({ rest }) => meet(rest)).length).toBeGreaterThan(100)
  })
})

/** What `storageKey` makes: two or three parts of what `encodeURIComponent` leaves. */
const STORAGE_KEY = /^(?:[\w\-.!~*'()%]+:){1,2}[\w\-.!~*'()%]+$/

const sendCommand: SendCommand = async () => []

function isAccepted(prefix: string): boolean {
  try {
    new RedisStore({ sendCommand, prefix })
    return true
  } catch {
    return false
  }
}
