import type { StoreEvent } from 'once-per-key/core'
import { type PostgresQuery, PostgresStoreError } from 'once-per-key/postgres'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { PostgresDatabase } from '../../../adapters/postgres/database.js'
import { PostgresRecordTable } from '../../../adapters/postgres/record-table.js'
import { PoolTurns } from '../../../adapters/sql/clients.js'
import { type SweepIntervals, SweepTimer } from '../../../adapters/sql/sweep-timer.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { store, pool, query, url } = await openStore()
beforeEach(async () => {
  await query('TRUNCATE once_per_key.records, once_per_key.sweeps')
})

const expire = (names: string) => query('UPDATE once_per_key.records SET expires_at = 1 WHERE name LIKE $1', [names])
const names = async () => (await query('SELECT name FROM once_per_key.records ORDER BY name')).map(({ name }) => name)

/** Rows that fill many pages, every second of them expired. */
async function fill(rows: number): Promise<void> {
  await query(
    `INSERT INTO once_per_key.records
       (id, name, format, revision, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
     SELECT sha256(convert_to('r' || i, 'UTF8')), 'r' || i, 1, 1, 'completed', 't', repeat('f', 64), 1, 0,
       CASE WHEN i % 2 = 0 THEN 4102444800000 ELSE 1 END, 200, '["",[]]', '\\x00'
     FROM generate_series(1, $1) i`,
    [rows],
  )
}

describe('sweep()', () => {
  test('removes what has expired, of every kind, and nothing else', async () => {
    for (const [name, { write }] of Object.entries(RECORDS)) {
      await write(store, `old ${name}`)
      await write(store, `new ${name}`)
    }
    await query('UPDATE once_per_key.records SET lease_until = 1 WHERE lease_until IS NOT NULL')
    await expire('old %')
    expect(await store.sweep()).toBe(Object.keys(RECORDS).length)
    expect(await names()).toEqual(
      Object.keys(RECORDS)
        .map((name) => `new ${name}`)
        .sort(),
    )
    expect(await store.sweep()).toBe(0)
  })

  test('removes rows of a later format, too', async () => {
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    await query("UPDATE once_per_key.records SET format = 2, state = 'paused'")
    expect(await store.sweep()).toBe(0)
    await expire('k')
    expect(await store.sweep()).toBe(1)
  })

  test('waits for no transaction that holds a row', async () => {
    await store.complete('held', { ...ownOf('t1'), answer: ANSWER })
    await store.complete('free', { ...ownOf('t1'), answer: ANSWER })
    await expire('%')
    const holder = await pool.connect()
    await holder.query("BEGIN; SELECT FROM once_per_key.records WHERE name = 'held' FOR UPDATE")
    expect(await store.sweep()).toBe(1)
    await holder.query('ROLLBACK')
    holder.release()
    expect(await names()).toEqual(['held'])
    expect(await store.sweep()).toBe(1)
  })

  test('goes through a large table in steps of a MiB', async () => {
    await fill(20_000)
    const [table] = await query("SELECT pg_relation_size('once_per_key.records') AS bytes")
    const mebibytes = Math.ceil(Number(table?.bytes) / 2 ** 20)
    expect(mebibytes).toBeGreaterThan(5)
    const sent: string[] = []
    const counting: PostgresQuery = (text, values) => {
      sent.push(text)
      return pool.query(text, values)
    }
    expect(await storeOn({ query: counting }).sweep()).toBe(10_000)
    expect(sent.length).toBe(mebibytes)
    expect(await query('SELECT count(*)::int AS rows FROM once_per_key.records')).toEqual([{ rows: 10_000 }])
  })
})

test('an expired row is no record to any command, swept or not', async () => {
  for (const command of ['begin', 'inspect', 'resolve', 'renew'] as const) {
    await store.complete(command, { ...ownOf('t1'), answer: ANSWER })
  }
  await expire('%')
  expect(await store.begin('begin', claimOf('t2', 'g'))).toEqual({
    acquired: true,
    attempt: 1,
    previousOutcome: 'none',
  })
  expect(await store.inspect('inspect')).toBeNull()
  const resolution = { token: 'o', attempt: 1, answer: null, retentionMs: 1_000 }
  expect(await store.resolve('resolve', resolution)).toEqual({ ok: false, record: null })
  expect(await store.renew('renew', { ...ownOf('t2'), leaseMs: 1_000 })).toEqual({ ok: true, restored: true })
})

describe('by itself', () => {
  const database = new PostgresDatabase({ pool }, 'once_per_key', new PoolTurns('max', PostgresStoreError), false)
  const table = new PostgresRecordTable(database, 'once_per_key')
  /** Of one test: its sweepers end with it. */
  let current = { isOver: false, steps: [] as Promise<unknown>[] }
  beforeEach(() => {
    current = { isOver: false, steps: [] }
  })
  afterEach(async () => {
    current.isOver = true
    await Promise.allSettled(current.steps)
  })

  test('each part of the table has its turn, then again from the first', async () => {
    await fill(10_000)
    sweeper(() => {}).start()
    await vi.waitFor(async () => expect(await names()).toHaveLength(5_000), { timeout: 20_000 })
    await expire('%')
    await vi.waitFor(async () => expect(await names()).toEqual([]), { timeout: 20_000 })
  })

  test('one of many processes sweeps; where it ends, another goes on', async () => {
    await fill(10_000)
    const turns: number[] = []
    const ends: (() => void)[] = []
    for (let number = 0; number < 8; number++) {
      let hasEnded = false
      ends.push(() => {
        hasEnded = true
      })
      sweeper(
        () => turns.push(number),
        () => hasEnded,
      ).start()
    }
    await vi.waitFor(() => expect(turns.length).toBeGreaterThan(0), { timeout: 20_000, interval: 1 })
    const first = turns[0] as number
    ends[first]?.()
    await vi.waitFor(async () => expect(await names()).toHaveLength(5_000), { timeout: 20_000 })
    expect(turns.filter((number) => number === first).length).toBeLessThan(turns.length)
  })

  test('two never take a turn within a pause of each other', async () => {
    await fill(10_000)
    const turns = await Promise.all(Array.from({ length: 10 }, () => table.takeSweepTurn(60_000)))
    expect(turns.filter((turn) => turn !== null)).toEqual([{ from: '0' }])
  })

  test('a table that was emptied by hand, with the row of the turns, is swept on', async () => {
    for (let turn = 0; turn < 2; turn++) {
      await query('TRUNCATE once_per_key.records, once_per_key.sweeps')
      await fill(1)
      expect(await table.sweepStretchIfOurTurn({ pauseMs: 0, restMs: 0 })).toBe(false)
      expect(await names()).toEqual([])
    }
  })

  test('a step that fails is told of, and the next one is tried all the same', async () => {
    const failures: unknown[] = []
    const mine = current
    let tries = 0
    new SweepTimer(
      {
        async step(pace) {
          if (++tries === 1) throw new Error('lost')
          const step = table.sweepStretchIfOurTurn(pace)
          mine.steps.push(step)
          return step
        },
        isClientClosed: () => mine.isOver,
        onFailure: (error) => failures.push(error),
      },
      { pauseMs: 5, restMs: 20 },
    ).start()
    await vi.waitFor(() => expect(tries).toBeGreaterThan(2), { timeout: 20_000 })
    expect(failures).toMatchObject([{ message: 'lost' }])
  })

  function sweeper(onTurn: () => void, hasEnded = () => false): SweepTimer {
    const mine = current
    const own = new PostgresRecordTable(database, 'once_per_key')
    own.takeSweepTurn = async (turnMs) => {
      const turn = await table.takeSweepTurn(turnMs)
      if (turn !== null) onTurn()
      return turn
    }
    const sweep = {
      step: (pace: SweepIntervals) => {
        const step = own.sweepStretchIfOurTurn(pace)
        mine.steps.push(step)
        return step
      },
      isClientClosed: () => mine.isOver || hasEnded(),
      onFailure: () => {},
    }
    return new SweepTimer(sweep, { pauseMs: 5, restMs: 50 })
  }
})

describe('a store', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  test.each([
    [undefined, 1],
    [true, 1],
    [false, 0],
  ])('with `sweeps: %s` begins to sweep %i times behind its first command', async (sweeps, times) => {
    const sent: string[] = []
    const counting: PostgresQuery = (text, values) => {
      if (text.includes('INSERT INTO "once_per_key".sweeps')) sent.push(text)
      return pool.query(text, values)
    }
    const store = storeOn({ query: counting, sweeps })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(sent).toEqual([])
    await store.begin('k', claimOf('t1'))
    await store.begin('k', claimOf('t2'))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(sent).toHaveLength(times)
  })

  test('begins to sweep where transactions take the keys too, which no claim comes before', async () => {
    const sent: string[] = []
    const counting: PostgresQuery = (text, values) => {
      if (text.includes('INSERT INTO "once_per_key".sweeps')) sent.push(text)
      return pool.query(text, values)
    }
    const store = storeOn({ query: counting, sweeps: true, transactions: pool })
    await store.unclaimed?.look('k', { token: 't1', fingerprint: 'f', unknownOutcome: 'rerun' })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(sent).toHaveLength(1)
  })

  test('does not sweep any more once its pool is closed, and says nothing of it', async () => {
    const closing = openPool(url)
    const events: StoreEvent[] = []
    const store = storeOn({ pool: closing, sweeps: true })
    store.observe((event) => void events.push(event))
    await store.begin('k', claimOf('t1'))
    await closing.end()
    await vi.advanceTimersByTimeAsync(200_000)
    expect(events).toEqual([])
  })

  test('tells that it cannot sweep', async () => {
    const events: StoreEvent[] = []
    const failing: PostgresQuery = async (text, values) => {
      if (text.includes('sweep')) throw Object.assign(new Error('permission denied'), { code: '42501' })
      return pool.query(text, values)
    }
    const store = storeOn({ query: failing, sweeps: true })
    store.observe((event) => void events.push(event))
    await store.begin('k', claimOf('t1'))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(events).toMatchObject([{ type: 'sweep_failed', error: { code: 'permission_denied' } }])
  })
})

test('the timers of a store keep no process alive', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  const acquired = [{ inserted: '1' }]
  await storeOn({ query: async () => acquired, sweeps: true }).begin('k', claimOf('t1'))
  expect(timers()).toBe(before)
})

describe('list()', () => {
  test('shows the records whose outcome is unknown, and how long they are kept, without an answer', async () => {
    for (const [name, { write }] of Object.entries(RECORDS)) await write(store, name)
    await store.begin('lapsed', { ...claimOf('t1'), leaseMs: 1 })
    await store.release('expired', { ...ownOf('t1'), uncertain: true, failedMs: 1 })
    await expire('expired')
    await new Promise((resolve) => setTimeout(resolve, 5))
    const { records, next } = await store.list(null)
    expect(next).toBeNull()
    expect(records).toEqual([
      {
        key: 'failed, uncertain',
        record: { state: 'failed', fingerprint: 'fingerprint', attempt: 1, uncertain: true },
        retentionRemainingMs: expect.any(Number),
      },
      {
        key: 'lapsed',
        record: {
          state: 'in-flight',
          fingerprint: 'f',
          attempt: 1,
          uncertain: false,
          leaseRemainingMs: expect.any(Number),
        },
        retentionRemainingMs: expect.any(Number),
      },
    ])
    for (const { retentionRemainingMs } of records) {
      expect(retentionRemainingMs).toBeGreaterThan(3_500_000)
      expect(retentionRemainingMs).toBeLessThanOrEqual(3_600_000)
    }
  })

  test('goes through a large table in bounded steps, and comes across each record once', async () => {
    await fill(20_000)
    await query(
      `UPDATE once_per_key.records
       SET state = 'failed', uncertain = 1, status = NULL, head = NULL, body = NULL, expires_at = 4102444800000
       WHERE name LIKE 'r%7'`,
    )
    const found: string[] = []
    let steps = 0
    for (let from: string | null = null, isFirst = true; isFirst || from !== null; isFirst = false) {
      const { records, next } = await store.list(from)
      expect(records.length).toBeLessThan(5_000)
      found.push(...records.map(({ key }) => key))
      from = next
      steps++
    }
    expect(steps).toBeGreaterThan(5)
    expect(new Set(found).size).toBe(2_000)
    expect(found).toHaveLength(2_000)
  })
})
