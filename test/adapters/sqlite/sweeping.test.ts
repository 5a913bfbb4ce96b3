import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'
import { DRIVER_NAMES, type DriverName } from './drivers.js'
import { openStore } from './open-store.js'

const HOUR_MS = 3_600_000

/** A store on a clock that a test moves, and the keys that have rows. */
function opened(driver: DriverName, options: { readonly sweeps?: boolean } = {}) {
  const { now, advance } = fakeClock()
  const all = openStore(driver, { now, ...options })
  const keys = () => all.query('SELECT key FROM once_per_key_records ORDER BY key').map(({ key }) => key)
  return { ...all, advance, keys }
}

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  describe('sweep()', () => {
    test('removes what has expired, of every kind and format, and nothing else', async () => {
      const { store, storeOn, database, advance, keys } = opened(driver)
      const quiet = storeOn({ sweeps: false })
      for (const [name, { write }] of Object.entries(RECORDS)) await write(store, `old ${name}`)
      database.exec("UPDATE once_per_key_records SET format = 2 WHERE key = 'old completed'")
      advance(HOUR_MS)
      for (const [name, { write }] of Object.entries(RECORDS)) await write(quiet, `new ${name}`)
      expect(await store.sweep()).toBe(Object.keys(RECORDS).length)
      expect(keys()).toEqual(
        Object.keys(RECORDS)
          .map((name) => `new ${name}`)
          .sort(),
      )
      expect(await store.sweep()).toBe(0)
    })

    test('takes no steps of records that live', async () => {
      const { store, query, advance } = opened(driver)
      for (const label of ['expired', 'kept']) {
        if (label === 'kept') advance(HOUR_MS)
        await store.begin(label, claimOf('t1'))
        await store.step(label, { ...ownOf('t1'), label, order: 1, state: 'begun', result: null, leaseMs: 30_000 })
      }
      await store.sweep()
      expect(query('SELECT key FROM once_per_key_records WHERE steps IS NOT NULL').map(({ key }) => key)).toEqual([
        'kept',
      ])
    })

    test('goes through many rows in steps between which other commands have their turn', async () => {
      const { store, database, advance, keys } = opened(driver)
      await store.migrate()
      fill(database, 1_000)
      advance(HOUR_MS)
      const swept = store.sweep()
      await store.renew('mine', { ...ownOf('t1'), leaseMs: 30_000 })
      const left = keys().length
      expect(left).toBeGreaterThan(500)
      expect(await swept).toBe(1_000)
      expect(keys()).toEqual(['mine'])
    })
  })

  describe('by itself', () => {
    test('a claim removes more than it adds, the oldest first', async () => {
      const { store, database, advance, keys } = opened(driver)
      await store.migrate()
      fill(database, 10)
      advance(HOUR_MS)
      await store.begin('a', claimOf('t1'))
      expect(keys()).toEqual(['a', 'r10', 'r5', 'r6', 'r7', 'r8', 'r9'])
      for (const key of ['b', 'c', 'd']) await store.begin(key, claimOf('t1'))
      expect(keys()).toEqual(['a', 'b', 'c', 'd'])
    })

    test('a claim of a key whose own row has expired gets it', async () => {
      const { store, advance, keys } = opened(driver)
      await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
      advance(HOUR_MS)
      expect(await store.begin('k', claimOf('t2'))).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
      expect(keys()).toEqual(['k'])
    })

    test('with `sweeps: false`, and where a claim is refused, nothing is removed', async () => {
      const { store, storeOn, database, advance, keys } = opened(driver, { sweeps: false })
      await store.migrate()
      fill(database, 3)
      advance(HOUR_MS)
      await store.begin('k', claimOf('t1'))
      await storeOn({ sweeps: true }).begin('k', claimOf('t2'))
      expect(keys()).toHaveLength(4)
    })
  })

  test('an expired row is no record to any command, swept or not', async () => {
    const { store, advance } = opened(driver, { sweeps: false })
    for (const command of ['begin', 'inspect', 'resolve', 'renew']) {
      await store.complete(command, { ...ownOf('t1'), answer: ANSWER })
    }
    advance(HOUR_MS)
    const fresh = { acquired: true, attempt: 1, previousOutcome: 'none' }
    expect(await store.begin('begin', claimOf('t2', 'g'))).toEqual(fresh)
    expect(await store.inspect('inspect')).toBeNull()
    const resolution = { token: 'o', attempt: 1, answer: null, retentionMs: 1_000 }
    expect(await store.resolve('resolve', resolution)).toEqual({ ok: false, record: null })
    expect(await store.renew('renew', { ...ownOf('t2'), leaseMs: 1_000 })).toEqual({ ok: true, restored: true })
  })

  describe('list()', () => {
    test('shows the records whose outcome is unknown, and how long they are kept', async () => {
      const { store, advance } = opened(driver)
      await store.release('expired', { ...ownOf('t1'), uncertain: true, failedMs: 1, retentionMs: 10 })
      advance(10)
      for (const [name, { write }] of Object.entries(RECORDS)) await write(store, name)
      await store.begin('lapsed', { ...claimOf('t1'), leaseMs: 10 })
      advance(10)
      const kept = { retentionRemainingMs: HOUR_MS - 10 }
      const uncertain = { state: 'failed', fingerprint: 'fingerprint', attempt: 1, uncertain: true }
      const lapsed = { state: 'in-flight', fingerprint: 'f', attempt: 1, uncertain: false, leaseRemainingMs: 0 }
      expect(await store.list(null)).toEqual({
        records: [
          { key: 'failed, uncertain', record: uncertain, ...kept },
          { key: 'lapsed', record: lapsed, ...kept },
        ],
        next: null,
      })
    })

    test('goes through many rows in bounded steps, and comes across each record once', async () => {
      const { store, database } = opened(driver)
      await store.migrate()
      fill(database, 2_500)
      database.exec(
        "UPDATE once_per_key_records SET state = 'failed', uncertain = 1, status = NULL, head = NULL, body = NULL " +
          "WHERE key LIKE 'r%7'",
      )
      const found: string[] = []
      let steps = 0
      for (let from: string | null = null, isFirst = true; isFirst || from !== null; isFirst = false) {
        const { records, next } = await store.list(from)
        found.push(...records.map(({ key }) => key))
        from = next
        steps++
      }
      expect(steps).toBe(3)
      expect(found).toHaveLength(250)
      expect(new Set(found).size).toBe(250)
    })
  })
})

/** Completed records, `r1` first, all of which expire within the hour. */
function fill(database: { exec(sql: string): unknown }, rows: number): void {
  database.exec(`
    WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ${rows})
    INSERT INTO once_per_key_records
      (key, format, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
    SELECT 'r' || i, 1, 'completed', 't', 'f', 1, 0, 1000 + i, 200, '["",[]]', zeroblob(10) FROM numbers`)
}
