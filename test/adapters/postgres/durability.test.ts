import type { PostgresStore } from 'once-per-key/postgres'
import type { PoolClient } from 'pg'
import { expect, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { insideOf } from './inside.js'
import { openStore } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

// Nobody waits for the log, which its writer writes once in ten seconds: a crash in between loses what others have confirmed.
const { server, store, pool, query } = await openStore({ synchronous_commit: 'off', wal_writer_delay: '10s' })
await query('CREATE TABLE others (id text)')

const inside = insideOf((tx, { text, values }) => tx.query(text, [...values]))

const COMMANDS: Readonly<Record<string, (store: PostgresStore) => Promise<unknown>>> = {
  begin: (store) => store.begin('k', claimOf('t2')),
  renew: (store) => store.renew('k', { ...ownOf('t1'), leaseMs: 500_000 }),
  complete: (store) => store.complete('k', { ...ownOf('t1'), answer: ANSWER }),
  release: (store) => store.release('k', { ...ownOf('t1'), failedMs: 60_000 }),
  resolve: (store) => store.resolve('k', { token: 'o', attempt: 1, answer: ANSWER, retentionMs: 60_000 }),
  'a completion inside a transaction': () =>
    inTransaction((tx) => inside.complete(tx, 'k', { token: 't1', retentionMs: 60_000, answer: ANSWER })),
  'a step': () => inTransaction((tx) => inside.step(tx, 'k', 't1', 'reserve')),
}

async function inTransaction(work: (tx: PoolClient) => Promise<unknown>): Promise<void> {
  const tx = await pool.connect()
  await tx.query('BEGIN')
  await inside.mark(tx, 't1', 30_000)
  await tx.query('SELECT pg_current_xact_id()') // As if something were written.
  await work(tx)
  await tx.query('COMMIT')
  tx.release()
}

const row = () =>
  query('SELECT state, token, attempt, uncertain, lease_until, expires_at, head FROM once_per_key.records')

test.each(Object.entries(COMMANDS))('%s, once it is confirmed, survives a crash of the server', async (name, send) => {
  await query('TRUNCATE once_per_key.records, others')
  const leaseMs = name === 'begin' || name === 'resolve' ? 1 : 30_000
  await store.begin('k', { ...claimOf('t1'), leaseMs })
  const before = await row()
  await send(store)
  const confirmed = await row()
  expect(confirmed).not.toEqual(before)
  await crashAfter(() => query("INSERT INTO others VALUES ('confirmed')"))
  await server.restart()
  expect(await row()).toEqual(confirmed)
  // What others have confirmed is lost: the crash was one.
  expect(await query('SELECT * FROM others')).toEqual([])
})

/** The server's process that writes the log is stopped meanwhile: it could write it just then. */
async function crashAfter(work: () => Promise<unknown>): Promise<void> {
  const [writer] = await query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
  const pid = Number(writer?.pid)
  process.kill(pid, 'SIGSTOP')
  await work()
  const crashed = server.crash()
  // The first process waits for it, and then kills it by itself after seconds.
  await vi.waitFor(() => expect(server.processes().length).toBeLessThanOrEqual(2))
  process.kill(pid, 'SIGKILL')
  await crashed
}
