import { createHash } from 'node:crypto'
import { PostgresStore } from 'once-per-key/postgres'
import type { Pool } from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { REVISION } from '../../../adapters/postgres/schema.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { server } = await openStore({})

/** The text of each revision. */
const DIGESTS: Readonly<Record<number, string>> = {
  1: '5c1f4adb4ea7de56770e906961c42f9e430c20039c44b0644999138b93920b2d',
}

async function inDatabase(name: string, work: (pool: Pool, url: string) => Promise<void>): Promise<void> {
  const url = await server.createDatabase(name)
  const pool = openPool(url)
  try {
    await work(pool, url)
  } finally {
    await pool.end()
  }
}

/** The store claims and completes. */
async function works(store: PostgresStore, key = 'k'): Promise<void> {
  expect(await store.begin(key, claimOf('t1'))).toMatchObject({ acquired: true })
  expect(await store.complete(key, { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })
  expect(await store.begin(key, claimOf('t2'))).toMatchObject({ record: { answer: { status: 201 } } })
}

describe('migrate()', () => {
  test.each(['read committed', 'serializable'])('is safe from many processes at once, at %s', (isolation) =>
    inDatabase(`at_once_${isolation.length}`, async (_, url) => {
      const config = { max: 1, options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}` }
      const pools = Array.from({ length: 20 }, () => openPool(url, config))
      await Promise.all(pools.map((pool) => storeOn({ pool }).migrate()))
      await works(storeOn({ pool: pools[0] as Pool }))
      await Promise.all(pools.map((pool) => pool.end()))
    }),
  )

  test('keeps what is there', () =>
    inDatabase('again', async (pool) => {
      const store = storeOn({ pool })
      await store.migrate()
      await works(store)
      await store.migrate()
      await pool.query(PostgresStore.schemaSql())
      expect(await store.inspect('k')).toMatchObject({ state: 'completed' })
    }))

  test('brings tables of an earlier revision to its own, and leaves those of a later one', () =>
    inDatabase('revisions', async (pool) => {
      const store = storeOn({ pool })
      await store.migrate()
      await works(store)
      const comment = "obj_description('once_per_key.sweeps'::regclass) AS comment"
      const installed = async () => (await pool.query(`SELECT ${comment}`)).rows
      const ours = await installed()
      for (const revision of ['0', '999']) {
        await pool.query(`COMMENT ON TABLE once_per_key.sweeps IS 'revision ${revision}'`)
        await store.migrate()
        expect(await installed()).toEqual(revision === '0' ? ours : [{ comment: 'revision 999' }])
      }
      await works(store, 'k2')
    }))

  test('while other processes run their commands, none of these fails', () =>
    inDatabase('deployment', async (pool) => {
      const store = storeOn({ pool })
      await store.migrate()
      let isOver = false
      let commands = 0
      const running = Array.from({ length: 4 }, async (_, worker) => {
        while (!isOver) await works(store, `${worker}-${commands++}`)
      })
      for (let i = 0; i < 5 || commands <= 10; i++) await pool.query(PostgresStore.schemaSql())
      isOver = true
      await Promise.all(running)
      expect(commands).toBeGreaterThan(10)
    }))

  test('of a current schema, by its text too, waits for no open transaction', () =>
    inDatabase('again_in_use', async (pool) => {
      const store = storeOn({ pool })
      await store.migrate()
      await works(store)
      const user = await pool.connect()
      await user.query('BEGIN; SELECT FROM once_per_key.records; UPDATE once_per_key.records SET attempt = attempt')
      await pool.query(PostgresStore.schemaSql())
      await user.query('ROLLBACK')
      user.release()
    }))

  test('makes stores in two schemas of one database, apart from each other', () =>
    inDatabase('two_schemas', async (pool) => {
      const [one, other] = ['payouts', 'Refunds_2'].map((schema) => storeOn({ pool, schema })) as [
        PostgresStore,
        PostgresStore,
      ]
      await one.migrate()
      await other.migrate()
      await works(one)
      expect(await other.inspect('k')).toBeNull()
      await works(other)
      const { rows } = await pool.query(`SELECT name FROM "Refunds_2".records`)
      expect(rows).toEqual([{ name: 'k' }])
    }))
})

describe('a role that may not create tables', () => {
  test('is told what to run; once that was run, migrate() and every command work', () =>
    inDatabase('with_roles', async (pool, url) => {
      await pool.query('CREATE ROLE the_role LOGIN')
      const limited = openPool(url.replace('postgres@', 'the_role@'))
      const store = storeOn({ pool: limited })
      await expect(store.migrate()).rejects.toMatchObject({
        code: 'permission_denied',
        message: expect.stringMatching(/schemaSql\(\).*GRANT USAGE ON SCHEMA "once_per_key" TO the_role/),
      })

      await pool.query(PostgresStore.schemaSql())
      await expect(store.begin('k', claimOf('t1'))).rejects.toMatchObject({ code: 'permission_denied' })

      // As the message says.
      const refusal = await store.migrate().then(String, String)
      for (const grant of refusal.match(/GRANT [^;.]+/g) ?? []) await pool.query(grant)
      await store.migrate()
      await works(store)
      expect(await store.sweep()).toBe(0)
      expect(await store.list(null)).toEqual({ records: [], next: null })
      await limited.end()
    }))

  test('may be given the schema by somebody else, and creates the rest by itself', () =>
    inDatabase('with_a_schema', async (pool, url) => {
      await pool.query('CREATE ROLE another LOGIN; CREATE SCHEMA once_per_key AUTHORIZATION another')
      const limited = openPool(url.replace('postgres@', 'another@'))
      await storeOn({ pool: limited }).migrate()
      await works(storeOn({ pool: limited }))
      await limited.end()
    }))
})

test.each(['LATIN1', 'SQL_ASCII'])('a database in %s keeps every answer', async (encoding) => {
  const name = `in_${encoding}`.toLowerCase()
  await server.run(`CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`)
  const pool = openPool(server.url(name))
  const store = storeOn({ pool })
  await store.migrate()
  await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
  expect(structuredClone(await store.inspect('k'))).toMatchObject({ answer: ANSWER })
  await pool.end()
})

test('a schema whose name has to be quoted is refused', () => {
  expect(() => PostgresStore.schemaSql({ schema: 'a b' })).toThrow(/schema: expected a name of letters/)
})

test('a changed text of the schema has a new revision: migrate() leaves tables that are there alone', () => {
  const seen = createHash('sha256').update(PostgresStore.schemaSql()).digest('hex')
  // A revision that was published stays as it is: raise REVISION, and add a line. One that was not gets its new digest.
  expect({ [REVISION]: seen }).toEqual({ [REVISION]: DIGESTS[REVISION] })
})
