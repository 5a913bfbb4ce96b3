import { randomBytes } from 'node:crypto'
import type { PoolConnection } from 'mysql2/promise'
import type { IdempotencyContext, Json, StepChange } from 'once-per-key/core'
import type { Statement as MySqlStatement, MySqlStore } from 'once-per-key/mysql'
import type { Statement as PostgresStatement, PostgresStore } from 'once-per-key/postgres'
import { type RunnerEvent, runner } from 'once-per-key/run'
import { sealed } from 'once-per-key/sealed'
import type { PoolClient } from 'pg'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  storeOn as mySqlStoreOn,
  openStore as openMySql,
  openPool as openMySqlPool,
} from '../adapters/mysql/open-store.js'
import { openPool, openStore as openPostgres, storeOn } from '../adapters/postgres/open-store.js'
import { DRIVER_NAMES } from '../adapters/sqlite/drivers.js'
import { openStore as openSqlite } from '../adapters/sqlite/open-store.js'
import { heardWarnings } from '../support/warnings.js'
import { OPERATION, rejection } from './runner-on-trial.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** `store.step` with work that inserts a row first. */
type StepWith = (
  context: IdempotencyContext,
  label: string,
  id: string,
  work?: () => Json | undefined,
) => Promise<unknown>

interface Opened {
  readonly store: PostgresStore | MySqlStore | ReturnType<typeof openSqlite>['store']
  readonly step: StepWith
  effects(): Promise<unknown[]>
  /** Results as the database keeps them. */
  kept(): Promise<string>
  /** Another attempt owns the record. */
  taken(): Promise<unknown>
}

const KEY = randomBytes(32).toString('base64')

const { pool, query, url } = await openPostgres()
const application = openPool(url)
await query('CREATE TABLE effects (id text PRIMARY KEY)')
beforeEach(() => query('TRUNCATE once_per_key.records, effects'))

const mySql = await openMySql()
await mySql.query('CREATE TABLE effects (id varchar(100) PRIMARY KEY)')
beforeEach(async () => {
  await mySql.query('TRUNCATE once_per_key_records')
  await mySql.query('TRUNCATE effects')
})

function onMySql(isSealed: boolean): Opened {
  const inner = mySqlStoreOn({ pool: mySql.pool, transactions: openMySqlPool(mySql.url) })
  const store = isSealed ? sealed(inner, { keys: [KEY] }) : inner
  return {
    store,
    step: (context, label, id, work = () => undefined) =>
      store.step(context, label, async (tx: PoolConnection) => {
        await tx.query('INSERT INTO effects VALUES (?)', [id])
        return work() as never
      }),
    effects: async () => (await mySql.query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id),
    kept: async () => resultsIn(await mySql.query('SELECT steps FROM once_per_key_records')),
    taken: () => mySql.query("UPDATE once_per_key_records SET token = 'another'"),
  }
}

function onPostgres(isSealed: boolean): Opened {
  const inner = storeOn({ pool, transactions: application })
  const store = isSealed ? sealed(inner, { keys: [KEY] }) : inner
  return {
    store,
    step: (context, label, id, work = () => undefined) =>
      store.step(context, label, async (tx: PoolClient) => {
        await tx.query('INSERT INTO effects VALUES ($1)', [id])
        return work() as never
      }),
    effects: async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id),
    kept: async () => resultsIn(await query('SELECT steps FROM once_per_key.records')),
    taken: () => query("UPDATE once_per_key.records SET token = 'another'"),
  }
}

function onSqlite(driver: (typeof DRIVER_NAMES)[number], isSealed: boolean): Opened {
  const { store: inner, database, query: rows } = openSqlite(driver)
  const store = isSealed ? sealed(inner, { keys: [KEY] }) : inner
  database.exec('CREATE TABLE effects (id TEXT PRIMARY KEY)')
  return {
    store,
    step: (context, label, id, work = () => undefined) =>
      store.step(context, label, (tx) => {
        tx.prepare('INSERT INTO effects VALUES (?)').run(id)
        return work() as never
      }),
    effects: async () => rows('SELECT id FROM effects ORDER BY id').map(({ id }) => id),
    kept: async () => {
      const [table] = rows("SELECT 1 FROM sqlite_master WHERE name = 'once_per_key_records'")
      return table === undefined ? '' : resultsIn(rows('SELECT steps FROM once_per_key_records'))
    },
    taken: async () => database.exec("UPDATE once_per_key_records SET token = 'another'"),
  }
}

/** The results in the column of the steps, in base 64 there. */
function resultsIn(rows: readonly Readonly<Record<string, unknown>>[]): string {
  const columns = rows.flatMap(({ steps }) => (steps === null ? [] : [Buffer.from(steps as Uint8Array).toString()]))
  const results: (string | null)[] = columns.flatMap((column) =>
    JSON.parse(column).steps.map((step: unknown[]) => step[3]),
  )
  return results.map((result) => Buffer.from(result ?? '', 'base64').toString('latin1')).join('|')
}

const STORES: [string, (isSealed: boolean) => Opened][] = [
  ['Postgres', onPostgres],
  ['MariaDB', onMySql],
  ...DRIVER_NAMES.map((driver): [string, (isSealed: boolean) => Opened] => [
    driver,
    (isSealed) => onSqlite(driver, isSealed),
  ]),
]

function started(opened: Opened, options: object = {}) {
  const events: RunnerEvent[] = []
  const { store } = opened
  const once = runner({ store, name: 'orders', onEvent: (event) => events.push(event), ...options })
  return { ...opened, once, types: () => events.map(({ type }) => type) }
}

describe.each(STORES)('a step in a transaction, on %s,', (name, open) => {
  test('runs exactly once: a later attempt gets its result as decoded, and repeats no write', async () => {
    const { step, once, effects, types, kept } = started(open(false))
    const seen: unknown[] = []
    let calls = 0
    const order = async (context: IdempotencyContext): Promise<string> => {
      const reserve = () => {
        calls++
        return { at: new Date(0) as never, note: undefined }
      }
      seen.push(await step(context, 'reserve', 'e1', reserve))
      if (context.attempt === 1) throw new Error('the process dies')
      return 'ordered'
    }
    await rejection(once(OPERATION, order))
    expect(await once(OPERATION, order)).toBe('ordered')
    const reserved = { at: '1970-01-01T00:00:00.000Z' }
    expect([seen, calls, await effects()]).toEqual([[reserved, reserved], 1, ['e1']])
    expect(types().filter((type) => type.startsWith('step'))).toEqual(['step_done', 'step_resumed'])
    expect(await kept()).not.toContain('1970')
  })

  test('that throws leaves nothing, and may be called again', async () => {
    const { step, once, effects } = started(open(false))
    const result = await once(OPERATION, async (context) => {
      const fails = () => {
        throw new Error('no')
      }
      await expect(step(context, 'reserve', 'e1', fails)).rejects.toThrow('no')
      return step(context, 'reserve', 'e2', () => 2) as Promise<number>
    })
    expect([result, await effects()]).toEqual([2, ['e2']])
  })

  test('whose result is no JSON is rolled back', async () => {
    const { step, once, effects } = started(open(false))
    const misuse = once(OPERATION, async (context) => void (await step(context, 'a', 'e1', () => Number.NaN)))
    expect(await rejection(misuse)).toMatchObject({ code: 'step_result_invalid' })
    expect(await effects()).toEqual([])
  })

  test('whose result is too large is done, and not kept: who needs it is refused', async () => {
    const { step, once, effects } = started(open(false), { maxStepBytes: 10 })
    const large = 'x'.repeat(20)
    const seen: unknown[] = []
    const order = async (context: IdempotencyContext): Promise<string> => {
      seen.push(await step(context, 'reserve', 'e1', () => large))
      throw new Error('the process dies')
    }
    await rejection(once(OPERATION, order))
    expect(await rejection(once(OPERATION, order))).toMatchObject({ code: 'step_not_kept' })
    expect([seen, await effects()]).toEqual([[large], ['e1']])
    expect(await once.inspect(OPERATION)).toMatchObject({ uncertain: true })
  })

  test('is misuse under a label that was used, without one, and inside another', async () => {
    const { store, step, once, effects } = started(open(false))
    await once(OPERATION, async (context) => {
      await step(context, 'reserve', 'e1')
      await expect(step(context, 'reserve', 'e2')).rejects.toMatchObject({ code: 'step_repeated' })
      const unlabelled = (store.step as (context: unknown, work: unknown) => Promise<unknown>)(context, () => {})
      await expect(unlabelled).rejects.toMatchObject({ code: 'label_invalid' })
      await expect(step(context, 'x'.repeat(101), 'e2')).rejects.toMatchObject({ code: 'label_invalid' })
      let inside: Promise<unknown> | undefined
      const nested = step(context, 'outer', 'e2', () => {
        inside = Promise.allSettled([context.step('inner', () => 1), step(context, 'inner', 'e3')])
        return 1
      })
      const settled = nested.then(() => inside)
      const refused = { status: 'rejected', reason: { code: 'step_in_transaction' } }
      expect(await settled).toMatchObject([refused, refused])
      return 'done'
    })
    expect(await effects()).toEqual(['e1', 'e2'])
  })

  test('of an owner that was taken over commits nothing', async () => {
    const { step, once, effects, taken } = started(open(false))
    const late = once(OPERATION, async (context) => {
      await taken()
      return step(context, 'reserve', 'e1') as Promise<undefined>
    })
    expect(await rejection(late)).toMatchObject({ code: expect.stringMatching(/^(record_taken|lease_lost)$/) })
    expect(await effects()).toEqual([])
  })

  test('has its result sealed, and a later attempt opens it', async () => {
    const { step, once, kept } = started(open(true))
    const order = async (context: IdempotencyContext): Promise<string> => {
      const found = (await step(context, 'reserve', 'e1', () => 'secret-iban')) as string
      await context.step('note', () => 'secret-note')
      if (context.attempt === 1) throw new Error('the process dies')
      return found
    }
    await rejection(once(OPERATION, order))
    expect(await kept()).not.toMatch(/secret/)
    expect(await once.inspect(OPERATION)).toMatchObject({
      steps: [
        { label: 'reserve', state: 'done' },
        { label: 'note', state: 'done' },
      ],
    })
    expect(await once(OPERATION, order)).toBe('secret-iban')
  })

  test('that nobody awaits is over before its run is: its result is recorded, and no warning denies it', async () => {
    const warnings = heardWarnings()
    const { step, once, effects, types } = started(open(false))
    const order = async (context: IdempotencyContext) => {
      void step(context, `reserve on ${name}`, 'e1')
      return 'ordered'
    }
    expect(await once(OPERATION, order)).toBe('ordered')
    await new Promise(setImmediate) // Node tells of a warning on a later tick.
    expect(await effects()).toEqual(['e1'])
    expect(types()).toEqual(['claimed', 'step_done', 'completed'])
    expect(warnings).toEqual([])
  })

  test('waits for results that are on their way, and a later transaction completes the record', async () => {
    const opened = started(open(false))
    const { step, once, effects, kept } = opened
    const confirmed = failsFirstResult(opened.store)
    const seen: boolean[] = []
    const order = async (context: IdempotencyContext) => {
      const charge = await context.step('charge', () => 'charged')
      seen.push(confirmed())
      const ship = await step(context, 'ship', 'e1', () => {
        seen.push(confirmed())
        return 'shipped'
      })
      return [charge, ship] as string[]
    }
    expect(await once(OPERATION, order)).toEqual(['charged', 'shipped'])
    expect(seen).toEqual([false, true])
    expect(await effects()).toEqual(['e1'])
    expect(await kept()).not.toContain('charged')
  })
})

/** The first result of a step is not recorded; returns whether one was since. */
function failsFirstResult(store: Opened['store']): () => boolean {
  const step = store.step.bind(store) as (...given: unknown[]) => Promise<unknown>
  let results = 0
  let isConfirmed = false
  vi.spyOn(store, 'step').mockImplementation(async (...given: unknown[]) => {
    const isResult = typeof given[0] === 'string' && (given[1] as StepChange).state === 'done'
    if (isResult && results++ === 0) throw new Error('away')
    const reply = await step(...given)
    isConfirmed ||= isResult
    return reply as never
  })
  return () => isConfirmed
}

interface Connection {
  query(sql: string): Promise<unknown>
  release(): void
}

/** Opens transactions on connections; the reply to each COMMIT is lost, until it is healed. */
function losesReplies<Tx extends Connection>(connect: () => Promise<Tx>) {
  let isLost = true
  return {
    heal() {
      isLost = false
    },
    async transaction(work: (tx: Tx) => Promise<void>) {
      const tx = await connect()
      try {
        await tx.query('BEGIN')
        await work(tx)
        await tx.query('COMMIT')
      } finally {
        tx.release()
      }
      if (isLost) throw Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' })
    },
  }
}

function losingOnPostgres() {
  const { heal, transaction } = losesReplies(() => application.connect())
  const run = (tx: PoolClient, { text, values }: PostgresStatement) => tx.query(text, [...values])
  const store = storeOn({ pool, transactions: { transaction, run } })
  const reserve = (context: IdempotencyContext, work: () => number) =>
    store.step(context, 'reserve', async (tx: PoolClient) => {
      await tx.query("INSERT INTO effects VALUES ('e1')")
      return work()
    })
  return { store, heal, reserve }
}

function losingOnMySql() {
  const mine = openMySqlPool(mySql.url)
  onTestFinished(() => mine.end())
  const { heal, transaction } = losesReplies(() => mine.getConnection())
  const run = (tx: PoolConnection, { text, values }: MySqlStatement) => tx.query(text, [...values])
  const store = mySqlStoreOn({ pool: mySql.pool, transactions: { transaction, run } })
  const reserve = (context: IdempotencyContext, work: () => number) =>
    store.step(context, 'reserve', async (tx: PoolConnection) => {
      await tx.query("INSERT INTO effects VALUES ('e1')")
      return work()
    })
  return { store, heal, reserve }
}

test.each([
  ['Postgres', losingOnPostgres],
  ['MariaDB', losingOnMySql],
])('on %s, a step whose COMMIT was lost is found under its label: it runs exactly once', async (_name, open) => {
  const { store, heal, reserve } = open()
  let calls = 0
  const once = runner({ store, name: 'orders', onEvent: () => {} })
  const result = await once(OPERATION, async (context) => {
    const reserved = () => reserve(context, () => ++calls)
    await expect(reserved()).rejects.toThrow('the connection was lost')
    heal()
    return reserved()
  })
  expect([result, calls]).toEqual([1, 1])
})
