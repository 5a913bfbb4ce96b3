import type { PostgresTransactions } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import type { Pool, PoolClient } from 'pg'
import { expect, test, vi } from 'vitest'
import { IN_STATEMENT } from '../../../support/postgres-statements.js'
import { transactionByHand } from '../../../support/transaction-by-hand.js'
import { storeOn } from '../open-store.js'
import { onDatabase } from './served.js'

// What keeps the promise, and what only saves work: the statements inside the transaction, with a fault in each.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

/** The statement that a piece of text finds, with other text in the place of some. */
type Planting = readonly [statement: string, find: RegExp, replacement: string]

const NO_LOCK: readonly Planting[] = [
  [IN_STATEMENT.enter, /pg_catalog\.pg_try_advisory_xact_lock\(/, '1 = pg_catalog.num_nonnulls('],
]
/** The INSERT of the last statement must raise. */
const NO_RAISE: readonly Planting[] = [
  [IN_STATEMENT.finish, /RETURNING t\.revision/, 'ON CONFLICT DO NOTHING RETURNING t.revision'],
  [IN_STATEMENT.finish, /done\.revision IS NOT NULL/, 'true'],
]
const LOOKS_INSIDE: readonly Planting[] = [
  [
    IN_STATEMENT.readEntered,
    /CASE WHEN pg_catalog\.current_setting\('transaction_isolation'\) \S+ 'read committed'/,
    'CASE WHEN true',
  ],
]

function plantedTransactions(pool: Pool, plantings: readonly Planting[]): PostgresTransactions<PoolClient> {
  return {
    transaction: async (work) => transactionByHand(await pool.connect(), work),
    run: (tx, { text, values }) => tx.query(plantings.reduce(plant, text), [...values]),
  }
}

function plant(text: string, [statement, find, replacement]: Planting): string {
  if (!text.includes(statement)) return text
  expect(text).toMatch(find)
  return text.replace(find, replacement)
}

/** Of attempts that all begin together: how many effects there are for how many keys, and how many attempts failed. */
async function race(level: string, keys: number, duplicates: number, plantings: readonly Planting[]) {
  const { query, insert, effects, pool, application } = database[level] as Awaited<ReturnType<typeof onDatabase>>
  const store = storeOn({ pool, transactions: plantedTransactions(application, plantings) })
  await query('TRUNCATE once_per_key.records, effects')
  let failed = 0
  // Each by itself, as in processes of their own: one runner would let duplicates wait for one another.
  const attempts = Array.from({ length: keys * duplicates }, async (_, i) => {
    const key = `${Math.floor(i / duplicates)}`
    const once = runner({ store, name: 'race', effects: 'in-transaction', onEvent: () => {} })
    await once({ scope: 'x', key, input: {} }, (context) =>
      store.transaction(context, async (tx) => void (await insert(tx, key))),
    ).catch(() => failed++)
  })
  await Promise.all(attempts)
  expect([pool.waitingCount, application.waitingCount]).toEqual([0, 0])
  const had = await effects()
  return { twice: had.length - new Set(had).size, keys: new Set(had).size, failed }
}

const LEVELS = ['read committed', 'repeatable read', 'serializable']
const database = Object.fromEntries(
  await Promise.all(LEVELS.map(async (level) => [level, await onDatabase(level)] as const)),
)

test.each<[string, readonly Planting[], boolean]>([
  ['without the lock, which only saves work', NO_LOCK, false],
  ['with an INSERT that does not raise, behind the lock', NO_RAISE, false],
  ['without both', [...NO_LOCK, ...NO_RAISE], true],
])('%s: are there keys that run twice?', async (_name, plantings, runTwice) => {
  const { twice, keys } = await race('read committed', 20, 4, plantings)
  expect(keys).toBe(20)
  expect(twice > 0).toBe(runTwice)
})

test.each(LEVELS)('the index alone holds each key to one effect, at %s', async (level) => {
  expect(await race(level, 20, 4, NO_LOCK)).toMatchObject({ twice: 0, keys: 20 })
})

test('unrelated transactions do not abort one another at SERIALIZABLE; a look inside would make them', async () => {
  expect(await race('serializable', 80, 1, [])).toEqual({ twice: 0, keys: 80, failed: 0 })
  expect((await race('serializable', 80, 1, LOOKS_INSIDE)).failed).toBeGreaterThan(0)
})
