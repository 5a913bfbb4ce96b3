import { type IdempotencyOptions, idempotency } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool, type PoolClient } from 'pg'
import { type Payout, sendPayout } from '../payout.js'
import { type Ground, KEY, MERCHANT, type Open, type Protection } from '../protection.js'
import { type ByHand, floorInside, IN_FLIGHT, plain } from './in-one-transaction.js'

export const plainPostgres: Open = plain(openByHand)
export const floorPostgresInside: Open = floorInside(openByHand)

async function openByHand(ground: Ground): Promise<ByHand<PoolClient>> {
  const { application, close } = await openPools(ground)
  return { inTransaction: (work) => inTransaction(application, work), insert, claim, complete, answerOf, close }
}

/** The same two statements around the transaction of the payout. */
export const floorPostgresAround: Open = async (work, ground) => {
  const { application, commands, close } = await openPools(ground)
  return {
    handlers: [
      async (req, res) => {
        const key = req.headers[KEY] as string
        if (!(await claim(commands, key))) return sendPayout(res, (await answerOf(commands, key)) ?? IN_FLIGHT)
        const payout = await work(req)
        await inTransaction(application, (tx) => insert(tx, payout))
        await complete(commands, key, payout)
        sendPayout(res, payout)
      },
    ],
    close,
  }
}

/** This library: a claim, then the record is completed in the transaction of the payout. */
export const leasedPostgres: Open = (work, ground) => oursInside(work, ground, {})

/** This library: the transaction takes the key, and completes the record. */
export const inTransactionPostgres: Open = (work, ground) => oursInside(work, ground, { effects: 'in-transaction' })

/** The same, with statements that the database plans once for each connection. */
export const namedPostgres: Open = (work, ground) =>
  oursInside(work, ground, { effects: 'in-transaction', prepares: true })

async function oursInside(work: Parameters<Open>[0], ground: Ground, terms: Terms): Promise<Protection> {
  const { store, once, close } = await openStore(ground, terms)
  return {
    handlers: [
      once,
      async (req, res) => {
        await store.transaction(req.idempotency, async (tx) => {
          const payout = await work(req)
          await insert(tx, payout)
          sendPayout(res, payout)
        })
      },
    ],
    close,
  }
}

/** This library: the record is completed after the transaction of the payout. */
export const oursPostgresAround: Open = async (work, ground) => {
  const { application, once, close } = await openStore(ground)
  return {
    handlers: [
      once,
      async (req, res) => {
        const payout = await work(req)
        await inTransaction(application, (tx) => insert(tx, payout))
        sendPayout(res, payout)
      },
    ],
    close,
  }
}

interface Pools {
  /** Of the transactions. */
  readonly application: Pool
  /** Of what protects them, outside of them. */
  readonly commands: Pool
  close(): Promise<unknown>
}

/** Empty tables, and as many connections for each variant. */
async function openPools({ postgresUrl }: Ground): Promise<Pools> {
  const [application, commands] = [10, 4].map(
    (max) => new Pool({ connectionString: postgresUrl, max, idleTimeoutMillis: 0 }),
  ) as [Pool, Pool]
  await application.query(TABLES)
  return { application, commands, close: () => Promise.all([application.end(), commands.end()]) }
}

interface Terms extends Pick<IdempotencyOptions, 'effects'> {
  readonly prepares?: boolean
}

async function openStore(ground: Ground, { effects = 'assumed', prepares = false }: Terms = {}) {
  const pools = await openPools(ground)
  const store = new PostgresStore({ pool: pools.commands, transactions: pools.application, prepares })
  await store.migrate()
  await pools.application.query('TRUNCATE once_per_key.records')
  const once = idempotency({ store, scope: (req) => req.get(MERCHANT), effects })
  const close: Protection['close'] = async () => {
    await once.idle()
    await pools.close()
  }
  return { ...pools, store, once, close }
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS payouts (id text PRIMARY KEY, answer jsonb NOT NULL);
  CREATE TABLE IF NOT EXISTS keys (key text PRIMARY KEY, status int, location text, body jsonb);
  TRUNCATE payouts, keys`

async function inTransaction<Value>(pool: Pool, work: (tx: PoolClient) => Promise<Value>): Promise<Value> {
  const tx = await pool.connect()
  try {
    await tx.query('BEGIN')
    const value = await work(tx)
    await tx.query('COMMIT')
    return value
  } catch (error) {
    await tx.query('ROLLBACK')
    throw error
  } finally {
    tx.release()
  }
}

type Sql = Pool | PoolClient

function insert(sql: Sql, { location, body }: Payout): Promise<unknown> {
  return sql.query('INSERT INTO payouts VALUES ($1, $2)', [location, body])
}

async function claim(sql: Sql, key: string): Promise<boolean> {
  const { rowCount } = await sql.query('INSERT INTO keys (key) VALUES ($1) ON CONFLICT DO NOTHING', [key])
  return rowCount === 1
}

function complete(sql: Sql, key: string, { status, location, body }: Payout): Promise<unknown> {
  return sql.query('UPDATE keys SET status = $2, location = $3, body = $4 WHERE key = $1', [
    key,
    status,
    location,
    body,
  ])
}

async function answerOf(sql: Sql, key: string): Promise<Payout | undefined> {
  const { rows } = await sql.query('SELECT status, location, body FROM keys WHERE key = $1 AND status IS NOT NULL', [
    key,
  ])
  return rows[0]
}
