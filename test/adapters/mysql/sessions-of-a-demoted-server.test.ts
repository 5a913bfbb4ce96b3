import type { Pool } from 'mysql2/promise'
import { expect, onTestFinished, test, vi } from 'vitest'
import { payoutServers } from '../../support/payout-servers.js'
import { claimOf } from '../claims.js'
import { openPool, openStore, storeOn } from './open-store.js'

// As with Postgres: `SET GLOBAL read_only = 1` ends no session, and a pool in use stayed with the old primary.

const { url, query } = await openStore({})
await query('CREATE TABLE effects (id INT) ENGINE = InnoDB')

/** A pool of one session, with a function that says which one it is. */
function onlySession(): { readonly pool: Pool; id(): Promise<unknown> } {
  const pool = openPool(url, { connectionLimit: 1 })
  onTestFinished(() => pool.end())
  return { pool, id: async () => JSON.stringify((await pool.query('SELECT CONNECTION_ID()'))[0]) }
}

/** When the errors come after which it is closed. */
const PAUSES_MS = [0, 999, 1]

function stopTheClock(): void {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
}

test.each([
  ['refuses to write', 'SET SESSION TRANSACTION READ ONLY', 'SET SESSION TRANSACTION READ WRITE'],
  ['says that it is read-only, and would write for root', 'SET GLOBAL read_only = 1', 'SET GLOBAL read_only = 0'],
])('a session that for a second %s is closed: the next one may reach the new primary', async (_name, set, reset) => {
  const { pool, id } = onlySession()
  await pool.query(set)
  onTestFinished(() => query(reset) as Promise<never>)
  stopTheClock()
  const [store, first] = [storeOn({ pool }), await id()]
  for (const pauseMs of PAUSES_MS) {
    vi.advanceTimersByTime(pauseMs)
    expect(await id()).toBe(first)
    await expect(store.begin(set, claimOf('t1'))).rejects.toMatchObject({ code: 'read_only' })
  }
  expect(await id()).not.toBe(first)
})

test('so is one of the pool of the application, behind a transaction of the store', async () => {
  const { pool: transactions, id } = onlySession()
  await transactions.query('SET SESSION TRANSACTION READ ONLY')
  stopTheClock()
  const first = await id()
  const pool = openPool(url)
  onTestFinished(() => pool.end())
  const store = storeOn({ pool, transactions })
  const { serve, close } = payoutServers({ store })
  onTestFinished(close)
  const post = await serve((_req, res, context) =>
    store.transaction(context, async (tx) => {
      await tx.query('INSERT INTO effects VALUES (1)')
      res.status(201).end()
    }),
  )
  for (const pauseMs of PAUSES_MS) {
    vi.advanceTimersByTime(pauseMs)
    expect(await id()).toBe(first)
    expect((await post()).status).toBe(500)
  }
  expect((await post()).status).toBe(201)
})
