import { Hono } from 'hono'
import { Redis } from 'ioredis'
import { createPool } from 'mysql2'
import { idempotency } from 'once-per-key'
import type { IdempotencyError } from 'once-per-key/core'
import { idempotency as onFetch } from 'once-per-key/fetch'
import { idempotency as onHono } from 'once-per-key/hono'
import { idempotency as onKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { runner } from 'once-per-key/run'
import { Pool } from 'pg'
import { createClient } from 'redis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BINDINGS, listen } from '../support/bindings.js'

const scope = (): string => 'acme'
const store = new MemoryStore()
const make = (options: object) => () => idempotency({ store, scope, ...options } as never)

/** The lines of mistakes. */
function mistakesOf(act: () => unknown): string[] {
  try {
    act()
  } catch (error) {
    return (error as IdempotencyError).message.split('\n').filter((line) => line.startsWith('  - '))
  }
  return []
}

/** As better-sqlite3 and node:sqlite have them, which are not on every version of Node. */
class Database {
  prepare(): void {}
  exec(): void {}
}

describe('a store that is none says what to write', () => {
  const client = new Redis({ lazyConnect: true })
  const SEEN = "store: expected a store, such as new MemoryStore() from 'once-per-key/memory'; seen: "
  const REDIS = "It is a client of Redis: write store: new RedisStore({ client }), from 'once-per-key/redis'"

  test.each([
    ['a client of ioredis', () => client, REDIS],
    ['a client of node-redis', () => createClient(), REDIS],
    ['a pool of pg', () => new Pool(), "write store: new PostgresStore({ pool }), from 'once-per-key/postgres'"],
    ['a pool of mysql2', () => createPool({}), "write store: new MySqlStore({ pool }), from 'once-per-key/mysql'"],
    [
      'a database of SQLite',
      () => new Database(),
      "write store: new SqliteStore({ database }), from 'once-per-key/sqlite'",
    ],
    ['a class', () => MemoryStore, 'a function. It is the class: write store: new MemoryStore(…)'],
    ['a promise', () => Promise.resolve(store), 'an object (Promise). Await it first'],
  ])('%s', (_name, given, words) => {
    const [mistake = '', ...others] = mistakesOf(make({ store: given() }))
    expect(mistake).toContain(SEEN)
    expect(mistake).toContain(words)
    expect(others).toEqual([])
  })

  test('in a runner too', () => {
    expect(mistakesOf(() => runner({ store: client as never, name: 'payouts' }))).toEqual([
      expect.stringContaining(REDIS),
    ])
  })
})

describe('what other libraries call an option is named by its name here', () => {
  test.each([
    ['ttl', 'retentionMs, in milliseconds'],
    ['ttlMs', 'retentionMs, in milliseconds'],
    ['ttlSeconds', 'retentionMs, in milliseconds'],
    ['expiry', 'retentionMs, in milliseconds'],
    ['expiresIn', 'retentionMs, in milliseconds'],
    ['lockTimeout', 'leaseMs, in milliseconds'],
    ['lock_ttl', 'leaseMs, in milliseconds'],
    ['keyHeader', 'header'],
    ['headerName', 'header'],
    ['storage', 'store'],
    ['tenantId', 'scope'],
    ['enforceIdempotency', 'required'],
    ['logger', 'onEvent'],
    ['cacheKeyPrefix', 'prefix, an option of the store'],
  ])('%s: %s', (name, meant) => {
    expect(mistakesOf(make({ [name]: 1 }))).toEqual([`  - ${name}: did you mean ${meant}?`])
  })

  test.each([
    ['redis', () => new RedisStore({ redis: {} } as never), 'client'],
    ['keyPrefix', () => new RedisStore({ keyPrefix: 'x' } as never), 'prefix'],
    ['client', () => new PostgresStore({ client: {} } as never), 'pool'],
    ['logger', () => runner({ store, name: 'payouts', logger: {} } as never), 'onEvent'],
  ])('%s, in other options', (name, act, meant) => {
    expect(mistakesOf(act)).toContain(`  - ${name}: did you mean ${meant}?`)
  })
})

describe('a duration that is meant in seconds', () => {
  test.each([
    [{ retentionMs: 86_400 }, 'If these are seconds, write retentionMs: 86_400_000. Otherwise raise retentionMs, or'],
    [{ retentionMs: 604_800 }, 'If these are seconds, write retentionMs: 604_800_000. Otherwise raise retentionMs, or'],
    [{ unknownRetentionMs: 3_600 }, 'If these are seconds, write unknownRetentionMs: 3_600_000.'],
    [{ leaseMs: 30 }, 'If these are seconds, write leaseMs: 30_000. Otherwise raise leaseMs, or'],
    [{ maxRunMs: 900 }, 'If these are seconds, write maxRunMs: 900_000.'],
  ])('is written in milliseconds: %j', (given, words) => {
    expect(mistakesOf(make(given))).toContainEqual(expect.stringContaining(words))
  })

  test.each([{ leaseMs: 7_999 }, { leaseMs: 1 }, { maxRunMs: 20_000 }])(
    'is not supposed where it is none: %j',
    (given) => {
      expect(mistakesOf(make(given)).join()).not.toContain('seconds')
      expect(mistakesOf(make(given))).toContainEqual(expect.stringContaining('. Raise '))
    },
  )
})

describe('a middleware that is mounted without having been called says so', () => {
  const WORDS =
    /It was mounted without having been called: (?:write `app\.use\(idempotency\({ store, scope }\)\)`|mount what it returns for its options, { store: …, … })/

  test.each(BINDINGS)('on $name', async (binding) => {
    // As `app.use(idempotency)` has it called.
    const steps = [(...args: unknown[]) => Reflect.apply(idempotency, undefined, args)]
    const seen: unknown[] = []
    const { port, close } = await listen(
      binding.listener(steps as never, (error, _req, res, _next) => {
        seen.push(error)
        res.statusCode = 500
        res.end()
      }),
    )
    onTestFinished(close)
    expect((await fetch(`http://127.0.0.1:${port}`, { method: 'POST' })).status).toBe(500)
    expect(seen).toEqual([expect.objectContaining({ message: expect.stringMatching(WORDS) })])
  })

  test('on Hono, Koa and Fetch', async () => {
    const seen: unknown[] = []
    const app = new Hono().use(onHono as never).onError((error, c) => {
      seen.push(error.message)
      return c.text('', 500)
    })
    expect((await app.request('/', { method: 'POST' })).status).toBe(500)
    expect(seen).toEqual([expect.stringMatching(WORDS)])
    expect(() => onFetch(new Request('http://127.0.0.1') as never)).toThrow(WORDS)
    const context = Object.create({ app: {} }, { req: { value: {} }, res: { value: {} } })
    expect(() => onKoa(context as never)).toThrow(WORDS)
  })

  test('and so does a store in place of the options', () => {
    expect(() => idempotency(store as never)).toThrow(/Give the store as an option: { store, … }/)
  })
})
