import { PostgresStore } from 'once-per-key/postgres'
import type { PoolClient } from 'pg'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { gate } from '../../support/gate.js'
import { inTime } from '../../support/in-time.js'
import { IN_STATEMENT } from '../../support/postgres-statements.js'
import { BINDINGS, type Handler } from './on-bindings.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { server: database, pool, query, url } = await openStore()
await query('CREATE TABLE effects (id text)')
beforeEach(() => query('TRUNCATE once_per_key.records, effects'))

const SETTINGS = { leaseMs: 4_000, maxRunMs: 6_000, storeTimeoutMs: 1_000 }
/** Behind `maxRunMs`, at most one more command is waited for. */
const IN_TIME_MS = SETTINGS.maxRunMs + 3 * SETTINGS.storeTimeoutMs
const effects = async () => (await query('SELECT id FROM effects')).map(({ id }) => id)
const records = () => query('SELECT state, uncertain = 1 AS uncertain FROM once_per_key.records')
const insert = (tx: PoolClient, id = 'paid') => tx.query('INSERT INTO effects VALUES ($1)', [id])
const serveWith = (name: string) => BINDINGS.find(([each]) => each === name)?.[1] as (typeof BINDINGS)[number][1]

/** A store whose transactions go through a proxy, which swallows what it is told to. */
async function behindProxy() {
  const proxy = await startFaultProxy(database.port)
  const application = openPool(url.replace(`:${database.port}`, `:${proxy.port}`))
  onTestFinished(async () => {
    const ended = application.end()
    await proxy.close()
    await ended
  })
  return { proxy, application, store: storeOn({ pool, transactions: application }) }
}

type Behind = Awaited<ReturnType<typeof behindProxy>>

const HANDLERS: Record<string, (behind: Behind) => Handler> = {
  transaction:
    ({ store }) =>
    (context, answer) =>
      store.transaction(context, async (tx) => {
        await insert(tx as PoolClient)
        return answer(201, 'paid')
      }),
  step:
    ({ store }) =>
    async (context, answer) => {
      await store.step(context, 'reserve', async (tx) => void (await insert(tx as PoolClient)))
      return answer(201, 'paid')
    },
  'completion by hand':
    ({ store, application }) =>
    async (context, answer) => {
      const tx = await application.connect()
      try {
        await tx.query('BEGIN')
        await insert(tx)
        await store.completeIn(tx, context, { status: 201, body: { id: 'paid' } })
        await tx.query('COMMIT')
      } finally {
        tx.release(true)
      }
      return answer(201, 'paid')
    },
}

describe.each(['Express', 'a function'])('with %s, nobody waits beyond the limits', (name) => {
  const serve = serveWith(name)

  test.each([
    ['the mark of a transaction', 'transaction', IN_STATEMENT.mark],
    ['the completion in a transaction', 'transaction', IN_STATEMENT.completion],
    ['the mark of a step', 'step', IN_STATEMENT.mark],
    ['the lock of a step', 'step', IN_STATEMENT.lockOfStep],
    ['a completion by hand', 'completion by hand', IN_STATEMENT.completion],
  ])('for the reply to %s', async (_what, kind, statement) => {
    const behind = await behindProxy()
    const errors: unknown[] = []
    const handler = (HANDLERS[kind] as (typeof HANDLERS)[string])(behind)
    const { send, idle } = await serve(behind.store, SETTINGS, async (context, answer) => {
      try {
        return await handler(context, answer)
      } catch (error) {
        errors.push(error)
        throw error
      }
    })
    void behind.proxy.hold(statement)
    const { status, id } = await inTime(send(), SETTINGS.maxRunMs)
    expect([status >= 500, id]).toEqual([true, null])
    expect(errors).toMatchObject([{ code: 'transaction_timed_out' }])
    await inTime(idle(), IN_TIME_MS)
    expect(await effects()).toEqual([])
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
  })

  test('for a COMMIT that is swallowed', async () => {
    const { store, proxy } = await behindProxy()
    const { send, idle } = await serve(
      store,
      SETTINGS,
      (HANDLERS.transaction as (typeof HANDLERS)[string])({ store } as Behind),
    )
    void proxy.hold('COMMIT')
    expect(await inTime(send(), IN_TIME_MS)).toMatchObject({ id: null })
    await inTime(idle(), IN_TIME_MS)
    expect(await effects()).toEqual([])
  })

  test('for a statement of the work', async () => {
    const { store, proxy } = await behindProxy()
    const { send, idle } = await serve(
      store,
      SETTINGS,
      (HANDLERS.transaction as (typeof HANDLERS)[string])({ store } as Behind),
    )
    void proxy.hold('INSERT INTO effects')
    expect(await inTime(send(), IN_TIME_MS)).toMatchObject({ id: null })
    await inTime(idle(), IN_TIME_MS)
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
  })

  test('for the backend of a COMMIT that stands still with the lock of the record: the outcome is unknown', async () => {
    const application = openPool(url)
    onTestFinished(() => application.end())
    let stopped = 0
    const store = new PostgresStore({
      pool,
      sweeps: false,
      transactions: {
        run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]),
        async transaction(work) {
          const tx = (await application.connect()).on('error', () => {})
          try {
            await tx.query('BEGIN')
            await work(tx)
            if (stopped !== 0) return await tx.query('COMMIT')
            stopped = (await tx.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
            process.kill(stopped, 'SIGSTOP')
            return await tx.query('COMMIT')
          } finally {
            tx.release()
          }
        },
      },
    })
    const { send, idle } = await serve(store, SETTINGS, (context, answer) =>
      store.transaction(context, async (tx) => {
        await insert(tx as PoolClient)
        return answer(201, 'paid')
      }),
    )
    try {
      expect(await inTime(send(), IN_TIME_MS)).toMatchObject({ id: null })
      await inTime(idle(), IN_TIME_MS)
    } finally {
      process.kill(stopped, 'SIGCONT')
    }
    // Meanwhile the database has counted it as idle: whether it commits or ends the session, effects and record agree.
    await vi.waitFor(async () => expect(await send()).toEqual({ status: 201, id: 'paid' }), 20_000)
    expect(await effects()).toEqual(['paid'])
  })

  test('for work inside a step whose session the database has ended', async () => {
    const application = openPool(url)
    onTestFinished(() => application.end())
    const store = storeOn({ pool, transactions: application })
    const end = gate()
    const { send, idle } = await serve(store, { ...SETTINGS, maxRunMs: 60_000 }, async (context, answer) => {
      await store.step(context, 'reserve', async (tx) => {
        const { rows } = await (tx as PoolClient).query('SELECT pg_backend_pid() AS pid')
        await query('SELECT pg_terminate_backend($1)', [rows[0].pid])
        await end.opened
      })
      return answer(201, 'paid')
    })
    expect(await inTime(send(), 10_000)).toMatchObject({ id: null })
    await inTime(idle(), 10_000)
    end.open()
  })
})
