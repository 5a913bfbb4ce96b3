import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'

// The rows of format 1, written at NOW: frozen. A record that was written before a deployment must be read after it, and
// the other way round.
const GOLDEN = JSON.parse(readFileSync(new URL('golden/rows-v1.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, GoldenRow>
>
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
})

type GoldenRow = Readonly<Record<string, string | number | null>>

async function opened(driver: (typeof DRIVER_NAMES)[number], row: GoldenRow) {
  const store = openStore(driver, { now: () => NOW + 1 })
  await store.store.migrate()
  const { body, ...rest } = row
  const names = Object.keys(rest)
  store.database
    .prepare(`INSERT INTO once_per_key_records (body, ${names.join(', ')}) VALUES (?${', ?'.repeat(names.length)})`)
    .run(typeof body === 'string' ? Uint8Array.from(Buffer.from(body, 'hex')) : null, ...Object.values(rest))
  return store
}
