import { runner } from 'once-per-key/run'
import type { Pool, PoolClient } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startPgBouncer } from '../../support/pgbouncer.js'
import { IN_STATEMENT } from '../../support/postgres-statements.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { url, server, query } = await openStore()
await query('CREATE TABLE effects (id text)')

/** With one connection, so that its session can be looked into. */
function single(connectionString = url): Pool {
  const pool = openPool(connectionString, { max: 1 })
  onTestFinished(() => pool.end())
  return pool
}

interface Prepared {
  readonly name: string
  readonly statement: string
  readonly calls: number
}

async function preparedIn(pool: Pool): Promise<Prepared[]> {
  const { rows } = await pool.query<Prepared>(
    'SELECT name, statement, (generic_plans + custom_plans)::int AS calls FROM pg_prepared_statements ORDER BY statement',
  )
  return rows
}

/** As many calls as of statements that are prepared once. */
async function callsOf(pool: Pool, words: string): Promise<number[]> {
  return (await preparedIn(pool)).filter(({ statement }) => statement.includes(words)).map(({ calls }) => calls)
}

test('each command is prepared once for a connection, and then only called', async () => {
  const pool = single()
  const store = storeOn({ pool, prepares: true })
  for (const key of ['a', 'b', 'c']) {
    await store.begin(key, claimOf('t1'))
    await store.complete(key, { ...ownOf('t1'), answer: ANSWER })
  }
  expect(await callsOf(pool, IN_STATEMENT.begin)).toEqual([3])
  expect(await callsOf(pool, IN_STATEMENT.complete)).toEqual([3])
  for (const { name } of await preparedIn(pool)) expect(name).toMatch(/^once_per_key_[0-9a-f]{16}$/)
})

test('by default nothing is prepared', async () => {
  const pool = single()
  await storeOn({ pool }).begin('unnamed', claimOf('t1'))
  expect(await preparedIn(pool)).toEqual([])
})

test.each([
  ['in-transaction', [IN_STATEMENT.enter, IN_STATEMENT.finish]],
  ['declared', [IN_STATEMENT.mark, IN_STATEMENT.completion]],
] satisfies [effects: 'in-transaction' | 'declared', statements: string[]][])(
  'effects: %s: the statements that go with BEGIN and COMMIT are prepared too',
  async (effects, ours) => {
    const application = single()
    const store = storeOn({ pool: single(), transactions: application, prepares: true })
    const once = runner({ store, name: effects, effects })
    const pay = (key: string, ...statements: string[]) =>
      once({ scope: 'acme', key, input: null }, (context) =>
        store.transaction(context, async (tx: PoolClient) => {
          for (const statement of statements) await tx.query(statement)
          return key
        }),
      )
    await pay('a', "INSERT INTO effects VALUES ('a')")
    // Nothing is written, so the last statement raises: whether it was prepared is not told.
    await expect(pay('b')).rejects.toMatchObject({ code: 'nothing_written' })
    await pay('c', "INSERT INTO effects VALUES ('c')")
    await pay('d', "INSERT INTO effects VALUES ('d')")
    for (const words of ours) expect(await callsOf(application, words), words).toHaveLength(1)
    expect(await query("SELECT id FROM effects WHERE id IN ('a', 'b', 'c', 'd') ORDER BY id")).toHaveLength(3)
    await query('TRUNCATE effects')
  },
)

test('a statement that raises at its first call on a connection can be sent again', async () => {
  const application = single()
  const store = storeOn({ pool: single(), transactions: application, prepares: true })
  const once = runner({ store, name: 'raising', effects: 'in-transaction' })
  const pay = (key: string, isEmpty: boolean) =>
    once({ scope: 'acme', key, input: null }, (context) =>
      store.transaction(context, async (tx) => {
        if (!isEmpty) await tx.query("INSERT INTO effects VALUES ('r')")
        return key
      }),
    )
  await expect(pay('a', true)).rejects.toMatchObject({ code: 'nothing_written' })
  expect(await pay('b', false)).toBe('b')
  expect(await pay('b', false)).toBe('b')
})

test('a pooler that gives each transaction another session, and knows no prepared statements, is named', async () => {
  const bouncer = await startPgBouncer(server.port)
  onTestFinished(() => bouncer.close())
  const through = bouncer.url(new URL(url).pathname.slice(1))
  const [pool, other] = [single(through), single(through)]
  const store = storeOn({ pool, prepares: true })
  await store.begin('first', claimOf('t1'))
  const holder = await other.connect() // Takes the session in which the statement was prepared.
  await holder.query('BEGIN')
  await expect(store.begin('second', claimOf('t1'))).rejects.toMatchObject({
    code: 'statement_unprepared',
    message: expect.stringMatching(/leave out `prepares: true`, or use PgBouncer 1\.21/),
  })
  await holder.query('ROLLBACK')
  holder.release()
  expect(await storeOn({ pool }).begin('second', claimOf('t1'))).toMatchObject({ acquired: true })
})

test('without a pool of pg there is nothing to prepare', () => {
  const query = async () => []
  expect(() => storeOn({ query, prepares: true })).toThrow(/prepares: expected a Pool of `pg`/)
  expect(() => storeOn({ query, prepares: 'yes' as unknown as boolean })).toThrow(/prepares: expected true or false/)
})
