import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'

// The rows of format 1, written at NOW: frozen. A record that was written before a deployment must be read after it, and
// the other way round.
const GOLDEN = rowsIn('golden/rows-v1.json')
// The next release writes these: this one must read them.
const NEXT = rowsIn('golden/rows-v2.json')
const NOW = 1_000_000

const COLUMNS =
  'key, format, state, token, fingerprint, attempt, uncertain, lease_until, expires_at, status, head, ' +
  'CASE WHEN body IS NOT NULL THEN hex(body) END AS body'

test('there is a golden row of each kind', () => {
  expect(Object.keys(GOLDEN)).toEqual(Object.keys(RECORDS))
})

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  describe.each(Object.entries(RECORDS))('a record of format 1: %s', (name, { write, shown }) => {
    const golden = GOLDEN[name] as GoldenRow

    test('is written as this row', async () => {
      const { store, query } = openStore(driver, { now: () => NOW })
      await write(store, 'k')
      expect({ ...query(`SELECT ${COLUMNS} FROM once_per_key_records`)[0] }).toEqual(golden)
    })

    test('is read as what it was', async () => {
      const { store } = await opened(driver, golden)
      const done = await store.renew('k', { ...ownOf('stranger', 'fingerprint'), leaseMs: 1 })
      const record = { ...shown, ...(shown.state === 'in-flight' && { leaseRemainingMs: 29_999 }) }
      expect(structuredClone(done)).toEqual({ ok: false, record: structuredClone(record) })
    })

    test('belongs to its owner', async () => {
      const { store } = await opened(driver, golden)
      const begun = await store.begin('k', claimOf('owner', 'fingerprint'))
      expect(begun.acquired).toBe(shown.state === 'in-flight')
    })
  })

  describe.each(Object.entries(RECORDS))('a record of format 2: %s', (name, { shown }) => {
    const golden = NEXT[name] as GoldenRow

    test('is read as what it was, and completed by its owner', async () => {
      const { store, query } = await opened(driver, golden)
      const record = { ...shown, ...(shown.state === 'in-flight' && { leaseRemainingMs: 29_999 }) }
      expect(structuredClone(await store.inspect('k'))).toEqual(structuredClone(record))
      const done = await store.complete('k', { ...ownOf('owner', 'fingerprint'), answer: ANSWER })
      expect(done.ok).toBe(shown.state !== 'failed')
      const changed = shown.state === 'in-flight'
      expect(query('SELECT format, checksum IS NULL AS unchecked FROM once_per_key_records')).toMatchObject([
        changed ? { format: 1, unchecked: 1 } : { format: 2, unchecked: 0 },
      ])
    })

    test.each(Object.keys(golden).filter((column) => column !== 'key'))(
      'is a store failure once its column %s is another',
      async (column) => {
        const { store } = await opened(driver, { ...golden, [column]: other(golden[column]) }, true)
        await expect(store.begin('k', claimOf('stranger', 'fingerprint'))).rejects.toMatchObject({
          code: 'record_unreadable',
        })
      },
    )
  })
})

type GoldenRow = Readonly<Record<string, string | number | null>>

function rowsIn(path: string): Readonly<Record<string, GoldenRow>> {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}

async function opened(driver: (typeof DRIVER_NAMES)[number], row: GoldenRow, ignoresChecks = false) {
  const store = openStore(driver, { now: () => NOW + 1 })
  await store.store.migrate()
  if (ignoresChecks) store.database.exec('PRAGMA ignore_check_constraints = ON')
  const names = Object.keys(row)
  const insert = `INSERT INTO once_per_key_records (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
  const bytes = ['checksum', 'body']
  const values = names.map((name) => {
    const value = row[name] as string | number | null
    return bytes.includes(name) && typeof value === 'string' ? Uint8Array.from(Buffer.from(value, 'hex')) : value
  })
  store.database.prepare(insert).run(...values)
  return store
}

/** As damage leaves it. */
function other(value: string | number | null | undefined): string | number {
  if (typeof value === 'number') return value ^ 4
  if (value === null || value === undefined || value === '') return '00'
  const last = value.at(-1) === '1' ? '2' : '1'
  return value.slice(0, -1) + last
}
