import { readFileSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'
import { openStore } from './open-store.js'

// The rows of format 1: frozen. A record that was written before a deployment must be read after it, and the other way
// round. Of times it is only said whether they are there.
const GOLDEN = JSON.parse(readFileSync(new URL('golden/rows-v1.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, Readonly<Record<string, unknown>>>
>

const { store, query } = await openStore()
beforeEach(() => query('TRUNCATE once_per_key.records'))

const COLUMNS =
  'encode(id, $$hex$$) AS id, name, format, state, token, fingerprint, attempt, uncertain, status, head, encode(body, $$hex$$) AS body'

test('there is a golden row of each kind', () => {
  expect(Object.keys(GOLDEN)).toEqual(Object.keys(RECORDS))
})

describe.each(Object.entries(RECORDS))('a record of format 1: %s', (name, { write, shown }) => {
  const golden = GOLDEN[name] as Readonly<Record<string, unknown>>

  test('is written as this row', async () => {
    await write(store, 'k')
    const [row] = await query(`SELECT ${COLUMNS}, lease_until IS NOT NULL AS lease FROM once_per_key.records`)
    expect(row).toEqual(golden)
    const [times] = await query(
      'SELECT expires_at - now() AS retention, lease_until - now() AS lease FROM once_per_key.records',
    )
    const { retention, lease } = times as { retention: { hours?: number; minutes?: number }; lease: unknown }
    const minutes = (retention.hours ?? 0) * 60 + (retention.minutes ?? 0)
    expect(minutes).toBe(name === 'failed' ? 9 : 59)
    if (lease !== null) expect(lease).toMatchObject({ seconds: 29 })
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
  })
})

const STEP = {
  record: '8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a',
  ...{ label: '"charge"', step_order: '2', state: 'done', result: '00ff' },
} as const

test('the step of a record is written as this row, and read as what it was', async () => {
  const own = { ...ownOf('owner', 'fingerprint'), leaseMs: 30_000 }
  await store.begin('k', claimOf('owner', 'fingerprint'))
  await store.step('k', { ...own, label: 'charge', order: 2, state: 'done', result: Uint8Array.of(0, 255) })
  const [row] = await query(
    `SELECT encode(record, 'hex') AS record, label, step_order, state, encode(result, 'hex') AS result
     FROM once_per_key.steps`,
  )
  expect(row).toEqual(STEP)

  await query('DELETE FROM once_per_key.steps')
  const { record, label, step_order, state, result } = STEP
  await query(
    `INSERT INTO once_per_key.steps (record, label, step_order, state, result)
     VALUES (decode($1, 'hex'), $2, $3, $4, decode($5, 'hex'))`,
    [record, label, step_order, state, result],
  )
  expect(await store.begin('k', claimOf('owner', 'fingerprint'))).toMatchObject({
    steps: [{ label: 'charge', state: 'done', result: Buffer.of(0, 255) }],
  })
})

function insert(row: Readonly<Record<string, unknown>>): Promise<unknown> {
  const { id, body, lease, ...rest } = row
  const names = Object.keys(rest)
  return query(
    `INSERT INTO once_per_key.records (id, body, lease_until, expires_at, ${names.join(', ')})
     VALUES (decode($1, 'hex'), decode($2, 'hex'), $3, now() + interval '10 minutes',
       ${names.map((_, i) => `$${i + 4}`).join(', ')})`,
    [id, body, lease ? '2100-01-01' : null, ...Object.values(rest)],
  )
}
