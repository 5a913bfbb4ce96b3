import { readFileSync } from 'node:fs'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'
import { openStore } from './open-store.js'

// The rows of format 1: frozen. A record that was written before a deployment must be read after it, and the other way
// round. Of times it is only said whether they are there.
const GOLDEN = JSON.parse(readFileSync(new URL('golden/rows-v1.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, Readonly<Record<string, string | number | null>>>
>

const { store, query } = await openStore()
beforeEach(() => query('TRUNCATE once_per_key_records'))

const STEPS = {
  ...{ attempt: 1, leaseMs: 30_000, uncertain: true },
  ...({ label: 'charge', order: 2, state: 'done', result: Uint8Array.of(0, 255) } as const),
}

/** With steps, which other stores have golden files of their own for. */
const WRITTEN: typeof RECORDS = {
  ...RECORDS,
  'in-flight, with a step': {
    write: async (store, key) => store.step?.(key, { ...ownOf('owner', 'fingerprint'), ...STEPS }),
    shown: { state: 'in-flight', fingerprint: 'fingerprint', attempt: 1, uncertain: true },
  },
}

const BINARY = ['id', 'name', 'state', 'token', 'fingerprint', 'head', 'body', 'steps']
const READABLE = new Set(['name', 'state', 'token', 'fingerprint', 'head', 'steps'])
const COLUMNS = [
  ...BINARY.map((name) =>
    READABLE.has(name) ? `CONVERT(${name} USING utf8mb4) AS ${name}` : `HEX(${name}) AS ${name}`,
  ),
  ...['format', 'revision', 'attempt', 'uncertain', 'status', 'lease_until IS NOT NULL AS lease'],
].join(', ')
const NOW = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000`

test('there is a golden row of each kind', () => {
  expect(Object.keys(GOLDEN)).toEqual(Object.keys(WRITTEN))
})

describe.each(Object.entries(WRITTEN))('a record of format 1: %s', (name, { write, shown }) => {
  const golden = GOLDEN[name] as Readonly<Record<string, string | number | null>>

  test('is written as this row', async () => {
    await write(store, 'k')
    const [row] = await query(`SELECT ${COLUMNS} FROM once_per_key_records`)
    expect({ ...row }).toEqual(golden)
    const [times] = await query(
      `SELECT expires_at - ${NOW} AS retention, lease_until - ${NOW} AS lease FROM once_per_key_records`,
    )
    const { retention, lease } = times as { retention: number; lease: number | null }
    const due = name === 'failed' ? 600_000 : 3_600_000
    expect(retention).toBeLessThanOrEqual(due)
    expect(retention).toBeGreaterThan(due - 10_000)
    if (lease !== null) expect(Math.ceil(lease / 10_000)).toBe(3)
  })

  test('is read as what it was', async () => {
    await insert(golden)
    const done = await store.renew('k', { ...ownOf('stranger', 'fingerprint'), leaseMs: 1 })
    const record = { ...shown, ...(shown.state === 'in-flight' && { leaseRemainingMs: expect.any(Number) }) }
    expect(structuredClone(done)).toEqual({ ok: false, record })
  })

  test('belongs to its owner', async () => {
    await insert(golden)
    const begun = await store.begin('k', claimOf('owner', 'fingerprint'))
    expect(begun.acquired).toBe(shown.state === 'in-flight')
    if (name.endsWith('step')) expect(begun).toMatchObject({ steps: [{ label: 'charge', result: Buffer.of(0, 255) }] })
  })
})

test('a record of a later format is a failure of the store, until it expires', async () => {
  await insert({ ...GOLDEN.completed, format: 2 })
  await expect(store.begin('k', claimOf('t'))).rejects.toMatchObject({ code: 'record_unreadable' })
  await query('UPDATE once_per_key_records SET expires_at = 1')
  expect(await store.begin('k', claimOf('t'))).toMatchObject({ acquired: true, attempt: 1 })
})

test.each([
  ["head = '[1,2]'", 'completed', 'head'],
  ["token = X'FF'", 'in-flight', 'token'],
  ["steps = '{}'", 'in-flight', 'steps'],
])('a damaged record (%s) is a failure of the store, and stays as it is', async (damage, name, column) => {
  await insert(GOLDEN[name] as Readonly<Record<string, string | number | null>>)
  await query(`UPDATE once_per_key_records SET ${damage}`)
  const before = await query('SELECT * FROM once_per_key_records')
  if (column !== 'token') {
    await expect(store.begin('k', claimOf('t', 'fingerprint'))).rejects.toMatchObject({
      code: 'record_unreadable',
      message: expect.stringContaining(column),
    })
  } else await store.begin('k', claimOf('t', 'fingerprint')).catch(() => {})
  expect(await query('SELECT * FROM once_per_key_records')).toEqual(before)
})

test('a damaged record is named apart where the others are listed', async () => {
  for (const key of ['acme:a', 'acme:b', 'other:a']) await store.begin(key, { ...claimOf(key), leaseMs: 1 })
  await store.complete('acme:a', { ...ownOf('acme:a'), answer: ANSWER })
  await query("UPDATE once_per_key_records SET head = '{' WHERE name = 'acme:a'")
  await vi.waitFor(async () => {
    const { records } = await store.list(null)
    expect(records.map(({ key }) => key).sort()).toEqual(['acme:b', 'other:a'])
  })
  const listed = await store.listScope('acme', null)
  expect(listed).toMatchObject({ records: [{ key: 'acme:b' }], unreadable: ['acme:a'] })
  expect((await store.listScope('other', null)).records).toMatchObject([{ key: 'other:a' }])
})

function insert(row: Readonly<Record<string, string | number | null>>): Promise<unknown> {
  const { id, body, lease, ...rest } = row
  const names = Object.keys(rest)
  const hex = (value: string | number | null | undefined) => (value == null ? null : Buffer.from(String(value), 'hex'))
  return query(
    `INSERT INTO once_per_key_records (id, body, lease_until, expires_at, ${names.join(', ')})
     VALUES (?, ?, ?, ${NOW} + 600000, ${names.map(() => '?').join(', ')})`,
    [hex(id), hex(body), lease ? 4_102_444_800_000 : null, ...Object.values(rest)],
  )
}
