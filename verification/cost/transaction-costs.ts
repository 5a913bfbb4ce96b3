import { PostgresStore, type PostgresStoreOptions } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import pg from 'pg'
import { countTrips } from './trips.js'

/** What one request makes Postgres do. */
export interface TransactionCost {
  /** Of the service, there and back. */
  readonly trips: number
  /** How often the log was synced to the disk. */
  readonly flushes: number
  /** Rows of records, and versions of them. */
  readonly inserted: number
  readonly updated: number
  readonly walBytes: number
}

/** How a payment may be written in a transaction, from the least to the most that a way protects from. */
export const WAYS_TO_PAY = [
  'unprotected',
  'by hand',
  'leased',
  'in-transaction',
  'in-transaction, named statements',
] as const

export type Way = (typeof WAYS_TO_PAY)[number]

type Pay = (key: string) => Promise<unknown>

/** A way, ready, and the table of its records. */
interface Ready {
  readonly pay: Pay
  readonly table: string
}

const REQUESTS = 50

/**
 * What a first request or a replay costs. `url`: of a database that nobody else uses, on a server that syncs its log. One request
 * at a time, so that no two share a flush.
 */
export async function transactionCost(url: string, way: Way, phase: 'first' | 'replay'): Promise<TransactionCost> {
  const [application, commands, watching] = [poolOn(url), poolOn(url), poolOn(url)]
  const counts = [countTrips(application), countTrips(commands)]
  const trips = () => counts.reduce((sum, count) => sum + count(), 0)
  try {
    await watching.query(TABLES)
    const { pay, table } = await WAYS[way](application, commands)
    for (const key of ['replayed', 'and another one']) await pay(key)
    // A page's first change after a checkpoint is logged as a whole page.
    await watching.query('CHECKPOINT')
    for (let i = 0; i < REQUESTS; i++) await pay(`after the checkpoint ${i}`)
    if (phase === 'replay') await pay('replayed') // The first read of a page that has become full prunes it, which is logged.
    const count = () => statistics([application, commands], watching, table)
    const before = { ...(await count()), trips: trips() }
    for (let i = 0; i < REQUESTS; i++) await pay(phase === 'first' ? `key ${i}` : 'replayed')
    // Before the statistics, which are asked for by the same clients.
    const made = trips()
    const after = { ...(await count()), trips: made }
    const each = (name: keyof TransactionCost) => Math.round((10 * (after[name] - before[name])) / REQUESTS) / 10
    const [inserted, updated] = [each('inserted'), each('updated')]
    return { trips: each('trips'), flushes: each('flushes'), inserted, updated, walBytes: each('walBytes') }
  } finally {
    await Promise.all([application, commands, watching].map((pool) => pool.end()))
  }
}

function poolOn(connectionString: string): pg.Pool {
  return new pg.Pool({ connectionString, max: 1, idleTimeoutMillis: 0 })
}

const TABLES = `
  DROP SCHEMA IF EXISTS once_per_key CASCADE;
  DROP TABLE IF EXISTS payments, keys;
  CREATE TABLE payments (id text PRIMARY KEY, answer jsonb NOT NULL);
  CREATE TABLE keys (key text PRIMARY KEY, fingerprint text NOT NULL, expires_at timestamptz NOT NULL, answer jsonb)`

const ANSWER = { status: 'pending', amountMinor: 129_900, currency: 'EUR', reference: 'r'.repeat(60) }
const FINGERPRINT = 'f'.repeat(46)

const WAYS: Readonly<Record<Way, (application: pg.Pool, commands: pg.Pool) => Promise<Ready>>> = {
  unprotected: async (application) => ({
    pay: (key) => inTransaction(application, (tx) => work(tx, key)),
    table: 'keys',
  }),
  'by hand': async (application) => ({
    pay: (key) => inTransaction(application, (tx) => byHand(tx, key)),
    table: 'keys',
  }),
  leased: (application, commands) => ours({ pool: commands, transactions: application }, 'assumed'),
  'in-transaction': (application, commands) => ours({ pool: commands, transactions: application }, 'in-transaction'),
  'in-transaction, named statements': (application, commands) =>
    ours({ pool: commands, transactions: application, prepares: true }, 'in-transaction'),
}

async function ours(
  options: Extract<PostgresStoreOptions, { readonly pool: unknown }>,
  effects: 'assumed' | 'in-transaction',
): Promise<Ready> {
  const store = new PostgresStore({ ...options, sweeps: false })
  await store.migrate()
  const once = runner({ store, name: 'payments', effects })
  const pay: Pay = (key) =>
    once({ scope: 'acme', key, input: null }, (context) =>
      store.transaction(context, (tx) => work(tx as pg.PoolClient, key)),
    )
  return { pay, table: 'once_per_key.records' }
}

async function work(tx: pg.ClientBase, key: string): Promise<typeof ANSWER> {
  await tx.query('INSERT INTO payments VALUES ($1, $2)', [key, ANSWER])
  return ANSWER
}

/** The least in one transaction, with what any protection must keep: who may not have the key, until when, and the answer. */
async function byHand(tx: pg.ClientBase, key: string): Promise<unknown> {
  const claim = "INSERT INTO keys VALUES ($1, $2, now() + interval '1 day') ON CONFLICT DO NOTHING"
  const { rowCount } = await tx.query(claim, [key, FINGERPRINT])
  if (rowCount === 0) return (await tx.query('SELECT answer FROM keys WHERE key = $1', [key])).rows
  const answer = await work(tx, key)
  return tx.query('UPDATE keys SET answer = $2 WHERE key = $1', [key, answer])
}

async function inTransaction<Value>(pool: pg.Pool, run: (tx: pg.ClientBase) => Promise<Value>): Promise<Value> {
  const tx = await pool.connect()
  try {
    await tx.query('BEGIN')
    const value = await run(tx)
    await tx.query('COMMIT')
    return value
  } finally {
    tx.release()
  }
}

/** What Postgres has counted. Each process tells what it has done when it is asked to, after its next statement. */
async function statistics(
  pools: readonly pg.Pool[],
  watching: pg.Pool,
  table: string,
): Promise<Omit<TransactionCost, 'trips'>> {
  for (const pool of pools) {
    await pool.query('SELECT pg_stat_force_next_flush()')
    await pool.query('SELECT 1')
  }
  const { rows } = await watching.query(
    `SELECT wal_sync AS flushes, n_tup_ins AS inserted, n_tup_upd AS updated,
       pg_current_wal_insert_lsn() - '0/0' AS "walBytes"
     FROM pg_stat_wal, pg_stat_user_tables WHERE relid = $1::regclass`,
    [table],
  )
  const [{ flushes, inserted, updated, walBytes }] = rows
  return { flushes: Number(flushes), inserted: Number(inserted), updated: Number(updated), walBytes: Number(walBytes) }
}
