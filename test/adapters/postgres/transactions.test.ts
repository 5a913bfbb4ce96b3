import type { Completion, IdempotencyRecord } from 'once-per-key/core'
import type { PoolClient } from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createTransactionStatements } from '../../../adapters/postgres/transaction-statements.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { insideOf } from './inside.js'
import { openPool, openStore } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { server, store, pool, query, url } = await openStore({})
const inside = insideOf((tx, { text, values }) => tx.query(text, [...values]))
const COMPLETION: Completion = { token: 't1', retentionMs: 3_600_000, answer: ANSWER }

let tx: PoolClient
const effects = () => query('SELECT id FROM effects')
const effect = (id = 'e1') => tx.query('INSERT INTO effects VALUES ($1)', [id])

await query('CREATE TABLE effects (id text PRIMARY KEY)')
beforeEach(async () => {
  await query('TRUNCATE once_per_key.records, effects')
  await store.begin('k', claimOf('t1'))
  tx = await pool.connect()
  await tx.query('BEGIN')
})
afterEach(async () => {
  await tx.query('ROLLBACK')
  tx.release()
})

/** Ends the record's lease, as if time had passed. */
function lapse(): Promise<unknown> {
  return query('UPDATE once_per_key.records SET lease_until = 1')
}

/** Nothing of the transaction can be committed any more. */
async function isUndone(): Promise<void> {
  expect((await tx.query('COMMIT')).command).toBe('ROLLBACK')
  expect(await effects()).toEqual([])
}

describe('effect and record', () => {
  test('are committed together', async () => {
    expect(await inside.mark(tx, 't1', 30_000)).toBe(true)
    await effect()
    await inside.complete(tx, 'k', COMPLETION)
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
    await tx.query('COMMIT')
    expect(await effects()).toEqual([{ id: 'e1' }])
    const record = { state: 'completed', fingerprint: 'f', attempt: 1, answer: ANSWER }
    expect(structuredClone(await store.inspect('k'))).toEqual(record)
  })

  test('are rolled back together', async () => {
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await inside.complete(tx, 'k', COMPLETION)
    await tx.query('ROLLBACK')
    expect(await effects()).toEqual([])
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
  })

  test('are lost together with their session', async () => {
    const other = openPool(url)
    const session = await other.connect()
    session.on('error', () => {})
    await session.query('BEGIN')
    await inside.mark(session, 't1', 30_000)
    await session.query("INSERT INTO effects VALUES ('e1')")
    await inside.complete(session, 'k', COMPLETION)
    const { rows } = await session.query('SELECT pg_backend_pid() AS pid')
    await query('SELECT pg_terminate_backend($1)', [rows[0].pid])
    expect(await store.release('k', { ...ownOf('t1'), uncertain: true, failedMs: 1_000 })).toEqual({ ok: true })
    expect(await effects()).toEqual([])
    session.release(true)
    await other.end()
  })

  test('survive a crash right behind the COMMIT', async () => {
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await inside.complete(tx, 'k', COMPLETION)
    await tx.query('COMMIT')
    tx.on('error', () => {})
    await server.crash()
    await server.restart()
    tx.release(true)
    tx = await pool.connect()
    expect(await effects()).toEqual([{ id: 'e1' }])
    expect(await store.inspect('k')).toMatchObject({ state: 'completed' })
  })

  test('may be an update that meets no row, where that is allowed: the mark tells that the transaction is the right one', async () => {
    await inside.mark(tx, 't1', 30_000)
    await tx.query("UPDATE effects SET id = 'e2' WHERE id = 'e1'")
    await inside.complete(tx, 'k', COMPLETION, true)
    expect((await tx.query('COMMIT')).command).toBe('COMMIT')
    expect(await store.inspect('k')).toMatchObject({ state: 'completed' })
  })
})

describe.each([
  ['a completion', () => inside.complete(tx, 'k', COMPLETION)],
  ['a step', () => inside.step(tx, 'k', 't1', 'reserve')],
])('%s raises, and nothing can be committed,', (_name, send) => {
  test('where the transaction has no mark', async () => {
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'transaction_unmarked' })
    await isUndone()
  })

  test('where it is not in the transaction, but over a pool', async () => {
    await tx.query('ROLLBACK') // From here on each statement is a transaction of its own.
    await inside.mark(tx, 't1', 30_000)
    await expect(send()).rejects.toMatchObject({ code: 'transaction_unmarked' })
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight', uncertain: false })
  })

  test.each(['COMMIT', 'ROLLBACK'])('where the transaction was over with %s, and another was begun', async (end) => {
    await inside.mark(tx, 't1', 30_000)
    await tx.query(end)
    await tx.query('BEGIN')
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'transaction_unmarked' })
    await isUndone()
  })

  test('where the mark was undone with a savepoint', async () => {
    await tx.query('SAVEPOINT s')
    await inside.mark(tx, 't1', 30_000)
    await tx.query('ROLLBACK TO SAVEPOINT s')
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'transaction_unmarked' })
    await isUndone()
  })

  test('where another attempt owns the record: a stale owner commits nothing', async () => {
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await lapse()
    expect(await store.begin('k', claimOf('t2'))).toMatchObject({ acquired: true, attempt: 2 })
    await expect(send()).rejects.toMatchObject({ code: 'record_taken' })
    await isUndone()
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight', attempt: 2 })
  })

  test('where there is no record, in this database or any more', async () => {
    await query('TRUNCATE once_per_key.records')
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'record_absent' })
    await isUndone()
  })

  test('where the retention of the record is over', async () => {
    await query('UPDATE once_per_key.records SET expires_at = 1')
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'record_absent' })
    await isUndone()
  })

  test('where the run has completed already', async () => {
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'record_ended', message: expect.stringContaining('completed') })
    await isUndone()
  })

  test('where the run has failed already', async () => {
    await store.release('k', { ...ownOf('t1'), failedMs: 60_000 })
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'record_ended', message: expect.stringContaining('failed') })
    await isUndone()
  })

  test('where it was completed in this very transaction', async () => {
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await inside.complete(tx, 'k', COMPLETION)
    await expect(send()).rejects.toMatchObject({ code: 'record_ended' })
    await isUndone()
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
  })

  test('where the record is of a later format', async () => {
    await query('UPDATE once_per_key.records SET format = 2')
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await expect(send()).rejects.toMatchObject({ code: 'record_unreadable' })
    await isUndone()
  })

  test('where another transaction holds the record, and is not over in time', async () => {
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT FROM once_per_key.records FOR UPDATE')
    await inside.mark(tx, 't1', 30_000)
    await effect()
    // As the client throws it.
    await expect(send()).rejects.toMatchObject({ code: '55P03' })
    await isUndone()
    await holder.query('ROLLBACK')
    holder.release()
  })
})

describe('a mark', () => {
  test('is for one run: another one’s transaction is refused', async () => {
    await inside.mark(tx, 't2', 30_000)
    await expect(inside.mark(tx, 't1', 30_000)).rejects.toMatchObject({ code: 'transaction_taken' })
    await isUndone()
  })

  test('may be set again by the same run', async () => {
    await inside.mark(tx, 't1', 30_000)
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await inside.complete(tx, 'k', COMPLETION)
  })

  test('is refused where the transaction can write nothing', async () => {
    await tx.query('SET TRANSACTION READ ONLY')
    await expect(inside.mark(tx, 't1', 30_000)).rejects.toMatchObject({ code: 'read_only' })
  })

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'tells whether a transaction at %s admits renewals',
    async (level) => {
      await tx.query(`SET TRANSACTION ISOLATION LEVEL ${level}`)
      expect(await inside.mark(tx, 't1', 30_000)).toBe(level === 'read committed')
    },
  )

  test.each([
    ['0', '30s'],
    ['5min', '30s'],
    ['10s', '10s'],
    ['500ms', '500ms'],
  ])(
    'ends a session that does nothing: where the setting was %s it is %s, until the transaction is over',
    async (before, during) => {
      await tx.query(`COMMIT; SET idle_in_transaction_session_timeout = '${before}'; BEGIN`)
      const setting = async () => (await tx.query('SHOW idle_in_transaction_session_timeout')).rows[0]
      await inside.mark(tx, 't1', 30_000)
      expect(await setting()).toEqual({ idle_in_transaction_session_timeout: during })
      await tx.query('COMMIT')
      expect(await setting()).toEqual({ idle_in_transaction_session_timeout: before })
      await tx.query('RESET idle_in_transaction_session_timeout')
    },
  )

  test('frees the record of an owner that stalls', async () => {
    const other = openPool(url)
    const session = await other.connect()
    session.on('error', () => {})
    await session.query('BEGIN')
    await inside.mark(session, 't1', 50)
    await session.query("INSERT INTO effects VALUES ('e1')")
    await inside.complete(session, 'k', COMPLETION)
    await lapsedAndTaken()
    expect(await effects()).toEqual([])
    session.release(true)
    await other.end()
  })
})

/** The lease is over, and once the record is free, another attempt claims it. */
async function lapsedAndTaken(): Promise<void> {
  await vi.waitFor(lapse, { timeout: 5_000 })
  expect(await store.begin('k', claimOf('t2'))).toMatchObject({
    acquired: true,
    attempt: 2,
    previousOutcome: 'unknown',
  })
}

describe.each(['read committed', 'repeatable read', 'serializable'])(
  'from the completion to COMMIT, at %s,',
  (level) => {
    beforeEach(async () => {
      await query('UPDATE once_per_key.records SET lease_until = 1')
      await tx.query(`COMMIT; BEGIN ISOLATION LEVEL ${level}`)
      await inside.mark(tx, 't1', 30_000)
      await effect()
      await inside.complete(tx, 'k', COMPLETION)
    })
    const failing = { ...ownOf('t1'), uncertain: true, failedMs: 60_000 }

    test('nobody takes over, though the lease has lapsed', async () => {
      expect(await store.begin('k', claimOf('t2'))).toMatchObject({
        acquired: false,
        record: { state: 'in-flight', leaseRemainingMs: 1 },
      })
      expect((await tx.query('COMMIT')).command).toBe('COMMIT')
      expect(await store.begin('k', claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'completed' } })
      expect(await effects()).toEqual([{ id: 'e1' }])
    })

    test('nobody is told that its outcome is unknown', async () => {
      const refusing = { ...claimOf('t2'), unknownOutcome: 'refuse' } as const
      const live = { state: 'in-flight', uncertain: false, leaseRemainingMs: 1 }
      expect(await store.begin('k', refusing)).toMatchObject({ acquired: false, record: live })
      await tx.query('ROLLBACK')
      const { record } = (await store.begin('k', refusing)) as { record: { leaseRemainingMs: number } }
      expect(record).toMatchObject({ state: 'in-flight', attempt: 1 })
      expect(record.leaseRemainingMs).toBeLessThan(0)
      expect(await store.begin('k', claimOf('t2'))).toMatchObject({ acquired: true, attempt: 2 })
    })

    test('whoever waits to be told of a lapse is told of what was committed meanwhile', async () => {
      const waiting = store.begin('k', { ...claimOf('t2'), unknownOutcome: 'refuse' })
      await Promise.race([waitsForTheLock(), waiting])
      await tx.query('COMMIT')
      const { record } = (await waiting) as { record: IdempotencyRecord }
      // On a slow machine the wait was over before.
      if (record.state === 'in-flight') expect(record.leaseRemainingMs).toBe(1)
      else expect(record).toMatchObject({ state: 'completed', answer: { status: 201 } })
    })

    test('a release waits, and tells that it was committed', async () => {
      const released = store.release('k', failing)
      await waitsForTheLock()
      await tx.query('COMMIT')
      expect(await released).toMatchObject({ ok: false, record: { state: 'completed', answer: { status: 201 } } })
    })

    test('a release waits, and where it was rolled back, fails the attempt', async () => {
      const released = store.release('k', failing)
      await waitsForTheLock()
      await tx.query('ROLLBACK')
      expect(await released).toEqual({ ok: true })
      expect(await store.inspect('k')).toMatchObject({ state: 'failed', uncertain: true })
    })

    test('a look proves nothing: it waits for nobody', async () => {
      expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
    })
  },
)

const WAITS_OFTEN = { interval: 5, timeout: 5_000 }

async function waitsForTheLock(): Promise<void> {
  await vi.waitFor(async () => {
    expect(await query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).toHaveLength(1)
  }, WAITS_OFTEN)
}

describe('before the completion', () => {
  test('a release that comes first fails the attempt, and the transaction with it', async () => {
    await inside.mark(tx, 't1', 30_000)
    await effect()
    await store.release('k', { ...ownOf('t1'), uncertain: true, failedMs: 60_000 })
    await expect(inside.complete(tx, 'k', COMPLETION)).rejects.toMatchObject({ code: 'record_ended' })
    await isUndone()
  })

  test('a renewal leaves READ COMMITTED alone, and above it aborts the transaction by the client’s own error', async () => {
    for (const level of ['read committed', 'repeatable read', 'serializable']) {
      await tx.query(`ROLLBACK; BEGIN ISOLATION LEVEL ${level}`)
      await inside.mark(tx, 't1', 30_000)
      await effect(level)
      await store.renew('k', { ...ownOf('t1'), leaseMs: 30_000 })
      const completing = inside.complete(tx, 'k', COMPLETION)
      if (level === 'read committed') await expect(completing).resolves.toBeUndefined()
      else await expect(completing).rejects.toMatchObject({ code: '40001', name: 'error' })
    }
  })
})

describe('a step', () => {
  test('commits writes, makes the record uncertain, and leaves it in flight', async () => {
    await inside.mark(tx, 't1', 30_000)
    await inside.step(tx, 'k', 't1', 'reserve')
    await effect()
    await tx.query('COMMIT')
    expect(await effects()).toEqual([{ id: 'e1' }])
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight', attempt: 1, uncertain: true })
    expect(await store.release('k', { ...ownOf('t1'), failedMs: 60_000 })).toEqual({ ok: true })
    expect(await store.inspect('k')).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('that is rolled back has made nothing uncertain', async () => {
    await inside.mark(tx, 't1', 30_000)
    await inside.step(tx, 'k', 't1', 'reserve')
    await tx.query('ROLLBACK')
    expect(await store.inspect('k')).toMatchObject({ uncertain: false })
  })

  test('keeps others from taking over until it is committed', async () => {
    await lapse()
    await inside.mark(tx, 't1', 30_000)
    await inside.step(tx, 'k', 't1', 'reserve')
    expect(await store.begin('k', claimOf('t2'))).toMatchObject({ acquired: false })
    await tx.query('COMMIT')
    expect(await store.begin('k', claimOf('t2'))).toMatchObject({ acquired: true, previousOutcome: 'unknown' })
  })
})

describe('a client that gives two transactions the same `tx`', () => {
  test('records no step of one run in the other’s record', async () => {
    const other = await pool.connect()
    await other.query('BEGIN')
    await store.begin('other', claimOf('t2'))
    let connection: PoolClient = tx
    const mixed = insideOf((_tx, { text, values }) => connection.query(text, [...values]))
    const shared = {} as PoolClient
    await mixed.mark(shared, 't1', 30_000)
    await mixed.step(shared, 'k', 't1', 'charge')
    connection = other
    await mixed.mark(shared, 't2', 30_000)
    await mixed.step(shared, 'other', 't2', 'refund')
    connection = tx
    const change = { label: 'charge', order: 1, state: 'done', result: Uint8Array.of(1) } as const
    await expect(mixed.stepDone(shared, 'k', 't1', change)).rejects.toMatchObject({ code: 'transaction_unmarked' })
    await other.query('ROLLBACK')
    other.release()
  })
})

test('damaged steps are no steps: the record is said to be unreadable', async () => {
  await query("UPDATE once_per_key.records SET steps = '{}'")
  await inside.mark(tx, 't1', 30_000)
  await expect(inside.step(tx, 'k', 't1', 'charge')).rejects.toMatchObject({ code: 'record_unreadable' })
})

test('our statements leave the time limit for locks as the transaction has it', async () => {
  await tx.query("SET LOCAL lock_timeout = '7s'")
  const limit = async () => (await tx.query('SHOW lock_timeout')).rows
  await inside.mark(tx, 't1', 30_000)
  await inside.step(tx, 'k', 't1', 'reserve')
  expect(await limit()).toEqual([{ lock_timeout: '7s' }])
  await inside.complete(tx, 'k', COMPLETION)
  expect(await limit()).toEqual([{ lock_timeout: '7s' }])
})

describe('by hand', () => {
  test('completes where something was written before, and needs no mark', async () => {
    await effect()
    await inside.completeByHand(tx, 'k', COMPLETION)
    await tx.query('COMMIT')
    expect(await effects()).toEqual([{ id: 'e1' }])
    expect(await store.inspect('k')).toMatchObject({ state: 'completed' })
  })

  test('counts what was written within a savepoint', async () => {
    await tx.query('SAVEPOINT s')
    await effect()
    await tx.query('RELEASE SAVEPOINT s')
    await inside.completeByHand(tx, 'k', COMPLETION)
  })

  test('raises where nothing was written: it is over a pool, or on another connection than the effects', async () => {
    await effect()
    const other = await pool.connect()
    await expect(inside.completeByHand(other, 'k', COMPLETION)).rejects.toMatchObject({ code: 'nothing_written' })
    await other.query('BEGIN')
    await expect(inside.completeByHand(other, 'k', COMPLETION)).rejects.toMatchObject({ code: 'nothing_written' })
    await other.query('ROLLBACK')
    other.release()
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
  })

  test('raises where the record is another’s, has ended or is not there', async () => {
    const raises = async (code: string) => {
      await tx.query('ROLLBACK; BEGIN')
      await effect()
      await expect(inside.completeByHand(tx, 'k', COMPLETION)).rejects.toMatchObject({ code })
      await isUndone()
    }
    await lapse()
    await store.begin('k', claimOf('t2'))
    await raises('record_taken')
    await query("UPDATE once_per_key.records SET token = 't1'")
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    await raises('record_ended')
    await query('TRUNCATE once_per_key.records')
    await raises('record_absent')
  })
})

test('a second database that has the schema refuses what is no record of its own', async () => {
  const other = openPool(await server.createDatabase('second'))
  await other.query((await import('once-per-key/postgres')).PostgresStore.schemaSql())
  const elsewhere = await other.connect()
  await elsewhere.query('BEGIN')
  await inside.mark(elsewhere, 't1', 30_000)
  await elsewhere.query('CREATE TABLE effects (id text)')
  await expect(inside.complete(elsewhere, 'k', COMPLETION)).rejects.toMatchObject({ code: 'record_absent' })
  await elsewhere.query('ROLLBACK')
  elsewhere.release()
  await other.end()
})

test('a database without the schema says so', async () => {
  const other = openPool(await server.createDatabase('without'))
  const elsewhere = await other.connect()
  await elsewhere.query('BEGIN')
  await expect(inside.mark(elsewhere, 't1', 30_000)).rejects.toMatchObject({ code: 'schema_missing' })
  elsewhere.release(true)
  await other.end()
})

test('each statement stands as a template too, for clients that take those', async () => {
  const byTemplate = insideOf((tx, { strings, values }) =>
    tx.query(String.raw({ raw: strings.raw }, ...strings.map((_, i) => `$${i + 1}`)), [...values]),
  )
  await byTemplate.mark(tx, 't1', 30_000)
  await byTemplate.step(tx, 'k', 't1', 'reserve')
  await byTemplate.complete(tx, 'k', COMPLETION)
  await tx.query('COMMIT')
  expect(structuredClone(await store.inspect('k'))).toMatchObject({ state: 'completed', answer: ANSWER })

  const { mark } = createTransactionStatements('once_per_key')
  const [one, other] = [mark({ token: 't1', idleMs: 1 }), mark({ token: 't2', idleMs: 2 })]
  expect(one.strings).toBe(other.strings)
  expect(one.strings).toHaveLength(one.values.length + 1)
})
