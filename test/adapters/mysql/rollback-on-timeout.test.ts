import type { PoolConnection } from 'mysql2/promise'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Statement } from '../../../adapters/mysql/sql.js'
import { transactionByHand } from '../../support/transaction-by-hand.js'
import { claimOf, ownOf } from '../claims.js'
import { openPool, storeOn } from './open-store.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const on = await onDatabase('SET SESSION innodb_lock_wait_timeout = 1', { innodb_rollback_on_timeout: 'ON' })
on.clears()

/** A store whose transactions meet a lock at their first statement with `text`; it is gone before they can try again. */
async function meetingALock(text: string, lock: () => Promise<{ end(): Promise<void> }>) {
  const pool = openPool(on.url)
  onTestFinished(() => pool.end())
  let isMet = false
  const run = (tx: PoolConnection, statement: Statement) => tx.query(statement.text, [...statement.values])
  return storeOn({
    pool,
    transactions: {
      transaction: async (work: (tx: PoolConnection) => Promise<void>) =>
        transactionByHand(await on.application.getConnection(), work),
      async run(tx: PoolConnection, statement: Statement) {
        if (isMet || !statement.text.includes(text)) return run(tx, statement)
        isMet = true
        const held = await lock()
        return run(tx, statement).finally(() => held.end())
      },
    },
  }) as unknown as typeof on.store
}

test.each([
  ['a key that no row has', 'INSERT INTO `once_per_key', false],
  ['a row that the leased way left', 'FOR UPDATE', true],
])('a transaction that a lock wait time-out has rolled back does not run its work: %s', async (_name, text, isLeft) => {
  const { url, store, insert, effects, record } = on
  const key = 'single-tenant:k'
  if (isLeft) {
    await store.begin(key, claimOf('t'))
    await store.release(key, { ...ownOf('t'), failedMs: 60_000 })
  }
  const other = openPool(url, { connectionLimit: 1 })
  onTestFinished(() => other.end())
  const locking = await meetingALock(text, async () => {
    const tx = await other.getConnection()
    await tx.query('START TRANSACTION')
    if (isLeft) await tx.query('SELECT 1 FROM once_per_key_records FOR UPDATE')
    else await tx.query(statementOf(key))
    return {
      async end() {
        await tx.query('ROLLBACK')
        tx.release()
      },
    }
  })
  let runs = 0
  const post = await on.serve(
    async (_req, res, context) => {
      await locking.transaction(context, async (tx) => {
        runs++
        await insert(tx, `e${runs}`)
        res.status(201).json({ id: `e${runs}` })
      })
    },
    { store: locking, effects: 'in-transaction' },
  )
  const before = await record()
  expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
  expect([await effects(), await record()]).toEqual([[], before])
  const sent = { status: 201, body: { id: 'e1' } }
  expect(await post()).toMatchObject({ ...sent, replayed: false })
  expect(await post()).toMatchObject({ ...sent, replayed: true })
  expect(await effects()).toEqual(['e1'])
})

test.each(['in-transaction', 'assumed'] as const)(
  'what work writes behind a deadlock that it catches is not committed: %s',
  async (way) => {
    const { application, effects, insert, query, store } = on
    await query('CREATE TABLE IF NOT EXISTS pairs (id INT PRIMARY KEY, n INT) ENGINE = InnoDB')
    await query('REPLACE INTO pairs VALUES (1, 0), (2, 0)')
    const update = (n: number, id: number) => `UPDATE pairs SET n = ${n} WHERE id = ${id}`
    const other = await application.getConnection()
    onTestFinished(() => other.destroy())
    let runs = 0
    const post = await on.serve(
      (_req, res, context) =>
        store.transaction(context, async (tx) => {
          runs++
          if (runs === 1) {
            await other.query('START TRANSACTION')
            // The one with more rows is not the victim.
            await other.query(
              "INSERT INTO effects VALUES ('x1'), ('x2'), ('x3'), ('x4'), ('x5'), ('x6'), ('x7'), ('x8')",
            )
            await other.query(update(1, 2))
            await tx.query(update(2, 1))
            const both = [other.query(update(1, 1)), tx.query(update(2, 2))]
            const [, met] = await Promise.allSettled(both)
            expect(met).toMatchObject({ status: 'rejected', reason: { errno: 1213 } })
            await other.query('ROLLBACK')
          }
          await insert(tx, `e${runs}`)
          res.status(201).json({ id: `e${runs}` })
        }),
      { effects: way },
    )
    expect(await post()).toMatchObject({ status: 500 })
    expect(await effects()).toEqual([])
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e2' } })
    expect(await effects()).toEqual(['e2'])
    const [{ on: commits } = {}] = (await application.query('SELECT @@autocommit AS `on`'))[0] as { on: number }[]
    expect(commits).toBe(1)
  },
)

test.each([
  ['NULL', 201],
  ['NULL', 500],
  ["'lost'", 201],
  ["'lost'", 500],
])(
  'no session is given back that does not commit by itself: with %s for what it did, after a %i',
  async (was, status) => {
    const [pool, transactions] = [openPool(on.url), openPool(on.url, { connectionLimit: 1 })]
    onTestFinished(async () => void (await Promise.all([pool.end(), transactions.end()])))
    const store = storeOn({ pool, transactions })
    const post = await on.serve(
      (_req, res, context) =>
        store.transaction(context, async (tx) => {
          await tx.query(`SET @once_per_key = ${was}`)
          await on.insert(tx, 'e1')
          if (status === 500) throw new Error('The work failed.')
          res.status(status).json({ id: 'e1' })
        }),
      { store },
    )
    expect(await post()).toMatchObject({ status })
    const commits = () =>
      transactions.query('SELECT @@autocommit AS `on`').then(([rows]) => (rows as { on: number }[])[0]?.on)
    expect(await commits().catch(() => 'closed')).not.toBe(0)
    expect(await commits()).toBe(1)
  },
)

/** Locks the key as another attempt does. */
function statementOf(key: string): string {
  return `INSERT INTO once_per_key_records (id, name, format, revision, state, token, fingerprint, attempt, uncertain, lease_until, expires_at)
    VALUES (UNHEX(SHA2('${key}', 256)), '${key}', 1, 1, 'in-flight', 'other', '', 1, 1, 0, 99999999999999)`
}
