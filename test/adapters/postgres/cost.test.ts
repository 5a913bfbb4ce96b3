import { describe, expect, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { insideOf } from './inside.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { store, query, url } = await openStore()

/** What the statistics of the server say of the table; they come a little late. */
async function statistics(): Promise<Record<string, number>> {
  await query('SELECT pg_stat_force_next_flush()').catch(() => {})
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  const [row] = await query(
    "SELECT * FROM pg_stat_user_tables WHERE schemaname = 'once_per_key' AND relname = 'records'",
  )
  return Object.fromEntries(Object.entries(row ?? {}).map(([name, value]) => [name, Number(value)]))
}

async function live(key: string): Promise<void> {
  await store.begin(key, claimOf('t1'))
  await store.renew(key, { ...ownOf('t1'), leaseMs: 30_000 })
  await store.complete(key, { ...ownOf('t1'), answer: ANSWER })
  await store.begin(key, claimOf('t2'))
}

describe('the table', () => {
  test('is never read as a whole, however small it is, and records change within their pages', async () => {
    const before = await statistics()
    for (let i = 0; i < 100; i++) await live(`k${i}`)
    await store.release('failed', { ...ownOf('t1'), uncertain: true, failedMs: 1_000 })
    await store.resolve('failed', { token: 'o', attempt: 1, answer: null, retentionMs: 1_000 })
    await store.inspect('failed')
    await store.list(null)
    await store.sweep()
    const { seq_scan, n_tup_upd, n_tup_hot_upd } = await statistics()
    expect(seq_scan).toBe(before.seq_scan)
    expect(n_tup_upd).toBeGreaterThanOrEqual(200)
    // One whose page was full has to move.
    expect(n_tup_hot_upd).toBeGreaterThan((n_tup_upd as number) * 0.9)
  })

  test('at SERIALIZABLE, commands on other keys undo no transaction that completes inside', async () => {
    const options = '-c default_transaction_isolation=serializable'
    const [application, own] = [openPool(url, { options, max: 1 }), openPool(url, { options })]
    const serializable = storeOn({ pool: own })
    await application.query(
      'CREATE TABLE accounts (id int PRIMARY KEY, balance int); INSERT INTO accounts VALUES (1, 0)',
    )
    const tx = await application.connect()
    tx.on('error', () => {})
    const inside = insideOf((client, { text, values }) => client.query(text, [...values]))
    for (let i = 0; i < 30; i++) {
      await query('TRUNCATE once_per_key.records')
      const others = Array.from({ length: 4 }, (_, n) => `other ${i} ${n}`)
      const eachOther = (send: (key: string) => Promise<unknown>) => Promise.all(others.map(send))
      await serializable.begin(`inside ${i}`, claimOf('t1'))
      // One that is known to be small would be read as a whole.
      await query('VACUUM ANALYZE once_per_key.records')
      await tx.query('BEGIN')
      await inside.mark(tx, 't1', 30_000)
      await eachOther((key) => serializable.begin(key, claimOf('t1')))
      await tx.query('UPDATE accounts SET balance = balance + 1')
      await inside.complete(tx, `inside ${i}`, { token: 't1', retentionMs: 60_000, answer: ANSWER })
      await eachOther((key) => serializable.complete(key, { ...ownOf('t1'), answer: ANSWER }))
      await eachOther((key) => serializable.begin(`new ${key}`, claimOf('t1')))
      await tx.query('COMMIT')
    }
    expect((await tx.query('SELECT balance FROM accounts')).rows).toEqual([{ balance: 30 }])
    tx.release()
    await Promise.all([application.end(), own.end()])
  })
})

test('a command is one statement, and one that writes over what it has read is two', async () => {
  let sent = 0
  const counting = storeOn({
    query: (text, values) => {
      sent++
      return query(text, values)
    },
  })
  const counted = async (send: () => unknown) => {
    const before = sent
    await send()
    return sent - before
  }
  const own = ownOf('t1')
  const resolution = { token: 'o', attempt: 1, answer: ANSWER, retentionMs: 60_000 }
  expect({
    begin: await counted(() => counting.begin('one', claimOf('t1'))),
    renew: await counted(() => counting.renew('one', { ...own, leaseMs: 1_000 })),
    complete: await counted(() => counting.complete('one', { ...own, answer: ANSWER })),
    replay: await counted(() => counting.begin('one', claimOf('t2'))),
    inspect: await counted(() => counting.inspect('one')),
    another: await counted(() => counting.begin('two', claimOf('t1'))),
    release: await counted(() => counting.release('two', { ...own, uncertain: true, failedMs: 60_000 })),
    resolve: await counted(() => counting.resolve('two', resolution)),
  }).toEqual({ begin: 1, renew: 1, complete: 1, replay: 1, inspect: 1, another: 1, release: 2, resolve: 2 })
  expect(await counting.inspect('two')).toMatchObject({ state: 'completed' })
})
