import { PostgresStore } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import { expect, test, vi } from 'vitest'
import { onDatabase } from './served.js'

// What keeps the promise, and what only saves work: the functions of the database, with a fault in each.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const LOCK = 'is_locked := pg_try_advisory_xact_lock(lock);'
const NO_LOCK = 'is_locked := true;'
/** The end of the INSERT of `finish`, which must raise. */
const RAISES = /(-- Never ON CONFLICT DO NOTHING: COMMIT follows\.[^;]*\));/g
const LOOKS_INSIDE = /IF current_setting\('transaction_isolation'\) <> 'read committed' THEN\s*RETURN;\s*END IF;/

type Planting = (sql: string) => string

const noLock: Planting = (sql) => planted(sql, sql.replace(LOCK, NO_LOCK))
const noRaise: Planting = (sql) => planted(sql, sql.replace(RAISES, '$1 ON CONFLICT DO NOTHING;'))
const looksInside: Planting = (sql) => planted(sql, sql.replace(LOOKS_INSIDE, ''))

function planted(before: string, after: string): string {
  expect(after).not.toBe(before)
  return after
}

/** Of attempts that all begin together: how many effects there are for how many keys, and how many attempts failed. */
async function race(level: string, keys: number, duplicates: number, plantings: readonly Planting[]) {
  const { store, query, insert, effects, pool, application } = database[level] as Awaited<ReturnType<typeof onDatabase>>
  await query(plantings.reduce((sql, plant) => plant(sql), PostgresStore.schemaSql()))
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
  ['without the lock, which only saves work', [noLock], false],
  ['with an INSERT that does not raise, behind the lock', [noRaise], false],
  ['without both', [noLock, noRaise], true],
])('%s: are there keys that run twice?', async (_name, plantings, runTwice) => {
  const { twice, keys } = await race('read committed', 20, 4, plantings)
  expect(keys).toBe(20)
  expect(twice > 0).toBe(runTwice)
})

test.each(LEVELS)('the index alone holds each key to one effect, at %s', async (level) => {
  expect(await race(level, 20, 4, [noLock])).toMatchObject({ twice: 0, keys: 20 })
})

test('unrelated transactions do not abort one another at SERIALIZABLE; a look inside would make them', async () => {
  expect(await race('serializable', 80, 1, [])).toEqual({ twice: 0, keys: 80, failed: 0 })
  expect((await race('serializable', 80, 1, [looksInside])).failed).toBeGreaterThan(0)
})
