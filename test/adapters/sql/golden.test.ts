import { readFileSync } from 'node:fs'
import type { MySqlStore } from 'once-per-key/mysql'
import type { PostgresStore } from 'once-per-key/postgres'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openStore as openMySql } from '../mysql/open-store.js'
import { openStore as openPostgres } from '../postgres/open-store.js'
import { RECORDS } from '../records.js'

// The rows of format 1, the same on both databases: frozen. A record that was written before a deployment must be read after it, and the
// other way round. Of times it is only said whether they are there.
const GOLDEN = JSON.parse(readFileSync(new URL('golden/rows-v1.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, GoldenRow>
>

type GoldenRow = Readonly<Record<string, string | number | null>>

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

/** A store with its table, in a new database. */
interface OpenedDialect {
  readonly store: PostgresStore | MySqlStore
  readonly table: string
  readonly nowSql: string
  /** The columns of a golden row: bytes in hexadecimal digits, texts as texts. */
  readonly columns: string
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  insert(row: GoldenRow): Promise<unknown>
}

const NUMBERS = ['format', 'revision', 'attempt', 'uncertain', 'status', 'lease_until IS NOT NULL AS lease']

async function onPostgres(): Promise<OpenedDialect> {
  const { store, query } = await openPostgres()
  const nowSql = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint::float8'
  return {
    ...{ store, query, nowSql, table: 'once_per_key.records' },
    columns: [
      ...["upper(encode(id, 'hex')) AS id", 'name', 'state', 'token', 'fingerprint', 'head'],
      ...["upper(encode(body, 'hex')) AS body", "convert_from(steps, 'UTF8') AS steps"],
      ...NUMBERS.map((number) => number.replace('lease_until IS NOT NULL', '(lease_until IS NOT NULL)::int')),
    ].join(', '),
    insert({ id, body, steps, lease, ...rest }) {
      const names = Object.keys(rest)
      return query(
        `INSERT INTO once_per_key.records (id, body, steps, lease_until, expires_at, ${names.join(', ')})
         VALUES (decode($1, 'hex'), decode($2, 'hex'), convert_to($3, 'UTF8'), $4, ${nowSql} + 600000,
           ${names.map((_, i) => `$${i + 5}`).join(', ')})`,
        [id, body, steps, lease ? 4_102_444_800_000 : null, ...Object.values(rest)],
      )
    },
  }
}

async function onMariaDb(): Promise<OpenedDialect> {
  const { store, query } = await openMySql()
  const nowSql = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000`
  const texts = ['name', 'state', 'token', 'fingerprint', 'head', 'steps']
  const hex = (value: string | number | null | undefined) => (value == null ? null : Buffer.from(String(value), 'hex'))
  return {
    ...{ store, query, nowSql, table: 'once_per_key_records' },
    columns: [
      ...['HEX(id) AS id', 'HEX(body) AS body', ...texts.map((name) => `CONVERT(${name} USING utf8mb4) AS ${name}`)],
      ...NUMBERS,
    ].join(', '),
    insert({ id, body, lease, ...rest }) {
      const names = Object.keys(rest)
      return query(
        `INSERT INTO once_per_key_records (id, body, lease_until, expires_at, ${names.join(', ')})
         VALUES (?, ?, ?, ${nowSql} + 600000, ${names.map(() => '?').join(', ')})`,
        [hex(id), hex(body), lease ? 4_102_444_800_000 : null, ...Object.values(rest)],
      )
    },
  }
}

test('there is a golden row of each kind', () => {
  expect(Object.keys(GOLDEN)).toEqual(Object.keys(WRITTEN))
})

describe.each([
  ['Postgres', onPostgres],
  ['MariaDB', onMariaDb],
] as const)('on %s', async (_name, open) => {
  const { store, table, nowSql, columns, query, insert } = await open()
  beforeEach(() => query(`DELETE FROM ${table}`))

  describe.each(Object.entries(WRITTEN))('a record of format 1: %s', (name, { write, shown }) => {
    const golden = GOLDEN[name] as GoldenRow

    test('is written as this row', async () => {
      await write(store, 'k')
      const [row] = await query(`SELECT ${columns} FROM ${table}`)
      expect({ ...row, ...integersOf(row, ['revision', 'attempt']) }).toEqual(golden)
      const [times] = await query(
        `SELECT expires_at - ${nowSql} AS retention, lease_until - ${nowSql} AS lease FROM ${table}`,
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
      if (name.endsWith('step')) {
        expect(begun).toMatchObject({ steps: [{ label: 'charge', result: Buffer.of(0, 255) }] })
      }
    })
  })

  test('a record of a later format is a failure of the store, until it expires', async () => {
    await insert({ ...GOLDEN.completed, format: 2 })
    await expect(store.begin('k', claimOf('t'))).rejects.toMatchObject({ code: 'record_unreadable' })
    await query(`UPDATE ${table} SET expires_at = 1`)
    expect(await store.begin('k', claimOf('t'))).toMatchObject({ acquired: true, attempt: 1 })
  })

  test.each([
    ["head = '[1,2]'", 'completed', 'head'],
    ["steps = '{}'", 'in-flight', 'steps'],
  ])('a damaged record (%s) is a failure of the store, and stays as it is', async (damage, name, column) => {
    await insert(GOLDEN[name] as GoldenRow)
    await query(`UPDATE ${table} SET ${damage}`)
    const before = await query(`SELECT * FROM ${table}`)
    await expect(store.begin('k', claimOf('t', 'fingerprint'))).rejects.toMatchObject({
      code: 'record_unreadable',
      message: expect.stringContaining(column),
    })
    expect(await query(`SELECT * FROM ${table}`)).toEqual(before)
  })

  test('a damaged record is named apart where the others are listed', async () => {
    for (const key of ['acme:a', 'acme:b', 'other:a']) await store.begin(key, { ...claimOf(key), leaseMs: 1 })
    await store.complete('acme:a', { ...ownOf('acme:a'), answer: ANSWER })
    await query(`UPDATE ${table} SET head = '{' WHERE name = 'acme:a'`)
    await vi.waitFor(async () => {
      const { records } = await store.list(null)
      expect(records.map(({ key }) => key).sort()).toEqual(['acme:b', 'other:a'])
    })
    const listed = await store.listScope('acme', null)
    expect(listed).toMatchObject({ records: [{ key: 'acme:b' }], unreadable: ['acme:a'] })
    expect((await store.listScope('other', null)).records).toMatchObject([{ key: 'other:a' }])
  })
})

/** Clients return large integers as texts. */
function integersOf(row: Record<string, unknown> | undefined, names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, Number(row?.[name])]))
}
