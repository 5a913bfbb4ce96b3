import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import { createOperationEngine, type Store } from 'once-per-key/core'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { newSealingKey, sealed } from 'once-per-key/sealed'
import { SqliteStore } from 'once-per-key/sqlite'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newDatabase } from '../support/postgres-server.js'
import { startRedisCluster } from '../support/redis-cluster.js'
import { startRedis } from '../support/redis-server.js'
import { thoroughly } from '../support/thoroughness.js'
import { ANSWER, claimOf, ownOf } from './claims.js'
import { A_DRIVER, openDatabase } from './sqlite/drivers.js'

// Many records, on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

interface Ground {
  readonly store: Store
  /** Makes copies of the record `big:0`, as `big:1` to `big:<copies>`. */
  copy(copies: number): Promise<unknown>
  /** Makes a record one of a later version, with the same key. */
  age(key: string): Promise<unknown>
  close(): Promise<unknown>
}

const COPIES_BY_SQL = (table: string, columns: string, names: string) =>
  `INSERT INTO ${table} (${columns}, format, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
   SELECT ${names}, format, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body`

async function onRedis(): Promise<Ground> {
  const server = await startRedis('--appendonly', 'no')
  const client = new Redis(server.port)
  const copied = `for i = 1, ARGV[1] do redis.call('COPY', 'once-per-key:big:0', 'once-per-key:big:' .. i) end`
  return {
    store: new RedisStore({ client }),
    age: (key) => client.set(`once-per-key:${key}`, '9'),
    copy: (copies) => client.eval(copied, 0, copies),
    async close() {
      client.disconnect()
      await server.close()
    },
  }
}

async function onCluster(): Promise<Ground> {
  const cluster = await startRedisCluster()
  const client = new Cluster([{ host: '127.0.0.1', port: cluster.nodes[0]?.port as number }])
  const store = new RedisStore({ client })
  return {
    store,
    age: (key) => client.set(`once-per-key:${key}`, '9'),
    async copy(copies) {
      const text = await client.getBuffer('once-per-key:big:0')
      const set = (_: unknown, i: number) =>
        client.set(`once-per-key:big:${i + 1}`, text as unknown as string, 'PX', 600_000)
      await Promise.all(Array.from({ length: copies }, set))
    },
    async close() {
      client.disconnect()
      await cluster.close()
    },
  }
}

async function onPostgres(): Promise<Ground> {
  const { url } = await newDatabase()
  const pool = new Pool({ connectionString: url })
  const store = new PostgresStore({ pool, sweeps: false })
  await store.migrate()
  const records = 'once_per_key.records'
  return {
    store,
    age: (key) => pool.query(`UPDATE ${records} SET format = 9, state = 'paused' WHERE name = $1`, [key]),
    copy: (copies) =>
      pool.query(
        `${COPIES_BY_SQL(records, 'id, name, revision', "sha256(convert_to('big:' || i, 'UTF8')), 'big:' || i, 1")}
         FROM ${records}, generate_series(1, ${copies}) i WHERE name = 'big:0'`,
      ),
    async close() {
      await pool.end()
    },
  }
}

async function onSqlite(): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-forgetting-'))
  const database = openDatabase(A_DRIVER, join(folder, 'records.db'))
  return {
    store: new SqliteStore({ database, sweeps: false }),
    async age(key) {
      database.exec(`UPDATE once_per_key_records SET format = 9, state = 'paused' WHERE key = '${key}'`)
    },
    async copy(copies) {
      database.exec(
        `WITH RECURSIVE counted(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counted WHERE i < ${copies})
         ${COPIES_BY_SQL('once_per_key_records', 'key', "'big:' || i")} FROM once_per_key_records, counted WHERE key = 'big:0'`,
      )
    },
    async close() {
      database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Of these, each is a command, and on SQLite a commit. */
const COPIES = thoroughly(
  { redis: 4_000, 'a Redis cluster': 4_000, postgres: 4_000, sqlite: 2_000 },
  { redis: 20_000, 'a Redis cluster': 10_000, postgres: 10_000, sqlite: 2_000 },
)
const GROUNDS = { redis: onRedis, 'a Redis cluster': onCluster, postgres: onPostgres, sqlite: onSqlite }

describe.each(Object.entries(GROUNDS))('on %s', (name, open) => {
  let ground: Ground
  beforeAll(async () => {
    ground = await open()
  })
  afterAll(() => ground?.close())

  const engineOn = (store: Store) => createOperationEngine({ store, storeTimeoutMs: 5_000, onEvent: () => {} })

  test('the answers of a scope are erased, in bounded steps; what is open and what is another’s stays', async () => {
    const { store } = ground
    const own = ownOf('owner')
    const copies = COPIES[name as keyof typeof COPIES]
    await store.complete('big:0', { ...own, answer: ANSWER })
    await ground.copy(copies)
    await store.complete('bigger:0', { ...own, answer: ANSWER })
    await store.complete('webhook:big:0', { ...own, answer: ANSWER })
    await store.begin('big:runs', claimOf('runs'))
    await store.release('big:unknown', { ...own, uncertain: true, failedMs: 1 })
    await store.release('big:failed', { ...own, failedMs: 60_000 })

    const engine = engineOn(store)
    const listed = vi.spyOn(store, 'listScope')
    const counted = { forgotten: copies + 1, left: 2, unreadable: 0 }
    expect(await engine.eraseScopeAnswers({ scope: 'big' }, { countsOnly: true })).toEqual(counted)
    expect(listed.mock.calls.length).toBeGreaterThan(1)
    for (const { value } of listed.mock.settledResults) expect(value.records.length).toBeLessThan(3_000)
    expect(await store.inspect?.('big:1')).toMatchObject({ answer: { status: ANSWER.status } })

    expect(await engine.eraseScopeAnswers({ scope: 'big' })).toEqual(counted)
    expect(await engine.eraseScopeAnswers({ scope: 'big' })).toEqual({ forgotten: 0, left: 2, unreadable: 0 })
    const answer = { status: 200, statusMessage: '', headers: [], body: null }
    for (const key of ['big:0', 'big:1', `big:${copies}`]) {
      const record = { state: 'completed', fingerprint: 'f', attempt: 1, answer }
      expect(await store.begin(key, claimOf('later'))).toEqual({ acquired: false, record })
    }
    for (const key of ['bigger:0', 'webhook:big:0'])
      expect(await store.inspect?.(key)).toMatchObject({ answer: { status: ANSWER.status } })
    expect(await store.renew('big:runs', { ...ownOf('runs'), leaseMs: 1 })).toEqual({ ok: true })

    expect(await engine.eraseScopeAnswers({ namespace: 'webhook', scope: 'big' })).toEqual({
      forgotten: 1,
      left: 0,
      unreadable: 0,
    })
  })

  test('a run that completes meanwhile is not lost, and none runs twice', async () => {
    const { store } = ground
    const engine = engineOn(store)
    const keys = Array.from({ length: 300 }, (_, i) => `race:${i}`)
    let isOver = false
    const forgetting = (async () => {
      let forgotten = 0
      while (!isOver) forgotten += (await engine.eraseScopeAnswers({ scope: 'race' })).forgotten
      return forgotten
    })()
    await Promise.all(
      keys.map(async (key) => {
        await store.begin(key, claimOf(key))
        expect(await store.complete(key, { ...ownOf(key), answer: ANSWER })).toEqual({ ok: true })
      }),
    )
    isOver = true
    const before = await forgetting
    const { forgotten, left } = await engine.eraseScopeAnswers({ scope: 'race' })
    expect([before + forgotten, left]).toEqual([keys.length, 0])
    const states = await Promise.all(keys.map((key) => store.begin(key, claimOf('later'))))
    const refused = expect.objectContaining({ answer: expect.objectContaining({ body: null }), attempt: 1 })
    for (const reply of states) expect(reply).toEqual({ acquired: false, record: refused })
  })

  test('records that cannot be read are counted: their answers may still be there', async () => {
    const { store, age } = ground
    for (const key of ['aged:0', 'aged:1', 'aged:2', 'agedx:0', 'webhook:aged:0'])
      await store.complete(key, { ...ownOf('owner'), answer: ANSWER })
    for (const key of ['aged:1', 'aged:2', 'agedx:0', 'webhook:aged:0']) await age(key)
    expect(await engineOn(store).eraseScopeAnswers({ scope: 'aged' })).toEqual({ forgotten: 1, left: 0, unreadable: 2 })
  })

  test('a sealed answer is erased without its key', async () => {
    const store = sealed(ground.store as Required<Store>, { keys: [newSealingKey()] })
    await store.complete('sealed:0', { ...ownOf('owner'), answer: ANSWER })
    await store.complete('sealed:1', { ...ownOf('owner'), answer: { ...ANSWER, body: null } })
    expect(await engineOn(ground.store).eraseScopeAnswers({ scope: 'sealed' })).toEqual({
      forgotten: 2,
      left: 0,
      unreadable: 0,
    })
    expect(await engineOn(store).eraseScopeAnswers({ scope: 'sealed' })).toEqual({
      forgotten: 0,
      left: 0,
      unreadable: 0,
    })
    for (const key of ['sealed:0', 'sealed:1']) {
      expect(await store.inspect(key)).toMatchObject({ state: 'completed', answer: { headers: [], body: null } })
    }
  })
})
