import { PGlite, type Transaction } from '@electric-sql/pglite'
import { createOperationEngine, type Store } from 'once-per-key/core'
import { PostgresStore } from 'once-per-key/postgres'
import { describe, expect, onTestFinished, test } from 'vitest'

const OPERATION = { namespace: 'entries', scope: 'acme', fingerprint: 'v1.f' }
const ANSWER = { status: 201, statusMessage: '', headers: [], body: Buffer.from('made') }

/** PGlite has one connection: nothing else is sent while a transaction is open. */
async function open() {
  const database = await PGlite.create()
  onTestFinished(() => database.close())
  const store = new PostgresStore({
    query: (text, values) => database.query(text, [...values]) as never,
    transactions: {
      transaction: (work: (tx: Transaction) => Promise<void>) => database.transaction(work),
      run: (tx, { text, values }) => tx.query(text, [...values]) as never,
    },
    sweeps: false,
  })
  await store.migrate()
  await database.exec('CREATE TABLE entries (id text)')
  const insert = (tx: Transaction) => tx.query("INSERT INTO entries VALUES ('e')")
  const count = async () => (await database.query('SELECT FROM entries')).rows.length
  return { store, insert, count }
}

describe('on a client with a single connection', () => {
  test('one transaction without a claim commits the effect with its record, and a repetition is a replay', async () => {
    const { store, insert, count } = await open()
    const engine = createOperationEngine({ store: store as Store, effects: 'in-transaction' })
    const claimed = await engine.claim({ ...OPERATION, key: 'e1' })
    if (claimed.action !== 'execute') throw new Error(claimed.action)
    const { run } = claimed
    await store.transaction(run.context, async (tx) => {
      await insert(tx)
      void run.complete(ANSWER)
    })
    await engine.idle()
    expect(await count()).toBe(1)
    expect((await engine.claim({ ...OPERATION, key: 'e1' })).action).toBe('replay')
  })

  test('a transaction behind a claim fails before its work, and names the way out', async () => {
    const { store, insert, count } = await open()
    const times = { leaseMs: 4_000, storeTimeoutMs: 200 }
    const engine = createOperationEngine({ store: store as Store, onEvent() {}, ...times })
    const claimed = await engine.claim({ ...OPERATION, key: 'e2' })
    if (claimed.action !== 'execute') throw new Error(claimed.action)
    await expect(store.transaction(claimed.run.context, insert)).rejects.toMatchObject({
      code: 'store_failed',
      message: expect.stringContaining(
        "single connection, as PGlite has, the store can never send a command beside an open transaction: use `effects: 'in-transaction'`",
      ),
    })
    await claimed.run.fail('certainly', 'refused')
    await engine.idle()
    expect(await count()).toBe(0)
  })
})
