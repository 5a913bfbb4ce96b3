import type { PoolClient } from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { inTime } from '../../support/in-time.js'
import { transactionByHand } from '../../support/transaction-by-hand.js'
import { BINDINGS } from './on-bindings.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { pool, query, url } = await openStore()
await query('CREATE TABLE effects (id text)')
/** The application's one connection, which something else holds. */
const narrow = openPool(url, { max: 1 })
let held: PoolClient
let statements: string[]
beforeEach(async () => {
  await query('TRUNCATE once_per_key.records, effects')
  held = await narrow.connect()
  statements = []
})
afterEach(() => held.release())

const store = storeOn({
  pool,
  transactions: {
    run: (tx: PoolClient, { text, values }) => {
      statements.push(text)
      return tx.query(text, [...values])
    },
    transaction: async (work) => transactionByHand(await narrow.connect(), work),
  },
})

const SETTINGS = { leaseMs: 4_000, maxRunMs: 60_000, storeTimeoutMs: 1_000 }
const records = () => query('SELECT state, uncertain = 1 AS uncertain FROM once_per_key.records')

describe.each(BINDINGS)('with %s, while a transaction waits for a connection', (_name, serve) => {
  test('a failure is sent at once, and the late transaction sends no statement', async () => {
    let late: Promise<unknown> | undefined
    const { send, idle } = await serve(store, SETTINGS, async (context, answer) => {
      late = store
        .transaction(context, async (tx) => {
          await tx.query("INSERT INTO effects VALUES ('late')")
          return answer(201, 'late')
        })
        .catch((error: unknown) => error)
      return answer(503, 'too late')
    })
    const { status } = await inTime(send(), 10_000)
    expect(status).toBeGreaterThanOrEqual(500)
    await inTime(idle(), 10_000)
    expect(await late).toMatchObject({ code: 'transaction_late' })
    held.release()
    held = await narrow.connect() // Behind the transaction, which waited first.
    expect(statements).toEqual([])
    expect(await query('SELECT FROM effects')).toEqual([])
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
  })

  test('the rejection of a time limit inside the handler is answered at once', async () => {
    const { send, idle } = await serve(store, SETTINGS, async (context, answer) => {
      const paying = store.transaction(context, () => answer(201, 'late'))
      return Promise.race([paying, Promise.reject(new Error('too late'))])
    })
    const { status } = await inTime(send(), 10_000)
    expect(status).toBeGreaterThanOrEqual(500)
    await inTime(idle(), 10_000)
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
  })
})

test.each(BINDINGS.filter(([name]) => /Express|function/.test(name)))(
  'a transaction that waits for a connection until maxRunMs is refused, with %s',
  async (_name, serve) => {
    const { send, idle } = await serve(store, { ...SETTINGS, maxRunMs: 4_000 }, (context, answer) =>
      store.transaction(context, () => answer(201, 'late')),
    )
    expect(await inTime(send(), 10_000)).toMatchObject({ id: null })
    await inTime(idle(), 5_000)
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
  },
)

test('a success that does not wait for its transaction is held until the COMMIT: it may speak of the effects', async () => {
  const express = BINDINGS[0] as (typeof BINDINGS)[number]
  const { send } = await express[1](store, SETTINGS, async (context, answer) => {
    void store.transaction(context, (tx) => tx.query("INSERT INTO effects VALUES ('paid')"))
    answer(201, 'paid')
    setImmediate(() => held.release())
  })
  expect(await inTime(send(), 10_000)).toEqual({ status: 201, id: 'paid' })
  expect(await query('SELECT id FROM effects')).toEqual([{ id: 'paid' }])
  held = await narrow.connect()
})
