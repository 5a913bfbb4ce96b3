import { createPool, type Pool, type PoolConnection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import { type IdempotencyOptions, idempotency } from 'once-per-key'
import { MySqlStore } from 'once-per-key/mysql'
import { type Payout, sendPayout } from '../payout.js'
import { type Ground, MERCHANT, type Open, type Protection } from '../protection.js'
import { type ByHand, floorInside, plain } from './in-one-transaction.js'

export const plainMySql: Open = plain(openByHand)
export const floorMySqlInside: Open = floorInside(openByHand)

async function openByHand(ground: Ground): Promise<ByHand<PoolConnection>> {
  const { application, close } = await openPools(ground)
  return { inTransaction: (work) => inTransaction(application, work), insert, claim, complete, answerOf, close }
}

/** This library: a claim, then the record is completed in the transaction of the payout. */
export const leasedMySql: Open = (work, ground) => ours(work, ground, 'assumed')

/** This library: the transaction takes the key, and completes the record. */
export const inTransactionMySql: Open = (work, ground) => ours(work, ground, 'in-transaction')

const ours = async (
  work: Parameters<Open>[0],
  ground: Ground,
  effects: NonNullable<IdempotencyOptions['effects']>,
): Promise<Protection> => {
  const { application, commands, close } = await openPools(ground)
  const store = new MySqlStore({ pool: commands, transactions: application, sweeps: false })
  await store.migrate()
  await application.query('TRUNCATE once_per_key_records')
  const once = idempotency({ store, scope: (req) => req.get(MERCHANT), effects })
  return {
    handlers: [
      once,
      async (req, res) => {
        await store.transaction(req.idempotency, async (tx: PoolConnection) => {
          const payout = await work(req)
          await insert(tx, payout)
          sendPayout(res, payout)
        })
      },
    ],
    async close() {
      await once.idle()
      await close()
    },
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
async function openPools({ mysqlUrl }: Ground): Promise<Pools> {
  const [application, commands] = [10, 4].map((connectionLimit) =>
    createPool({ uri: mysqlUrl as string, connectionLimit }),
  ) as [Pool, Pool]
  for (const statement of TABLES) await application.query(statement)
  return { application, commands, close: () => Promise.all([application.end(), commands.end()]) }
}

const TABLES = [
  'CREATE TABLE IF NOT EXISTS payouts (id varchar(100) PRIMARY KEY, answer json NOT NULL)',
  'CREATE TABLE IF NOT EXISTS hand_keys (id varchar(100) PRIMARY KEY, answer json)',
  'TRUNCATE payouts',
  'TRUNCATE hand_keys',
]

async function inTransaction<Value>(pool: Pool, work: (tx: PoolConnection) => Promise<Value>): Promise<Value> {
  const tx = await pool.getConnection()
  try {
    await tx.beginTransaction()
    const value = await work(tx)
    await tx.commit()
    return value
  } catch (error) {
    await tx.rollback()
    throw error
  } finally {
    tx.release()
  }
}

function insert(tx: PoolConnection, { location, body }: Payout): Promise<unknown> {
  return tx.query('INSERT INTO payouts VALUES (?, ?)', [location, JSON.stringify(body)])
}

async function claim(tx: PoolConnection, key: string): Promise<boolean> {
  const [{ affectedRows }] = await tx.query<ResultSetHeader>('INSERT IGNORE INTO hand_keys (id) VALUES (?)', [key])
  return affectedRows === 1
}

function complete(tx: PoolConnection, key: string, payout: Payout): Promise<unknown> {
  return tx.query('UPDATE hand_keys SET answer = ? WHERE id = ?', [JSON.stringify(payout), key])
}

async function answerOf(tx: PoolConnection, key: string): Promise<Payout> {
  const [rows] = await tx.query<RowDataPacket[]>('SELECT CAST(answer AS CHAR) AS answer FROM hand_keys WHERE id = ?', [
    key,
  ])
  return JSON.parse(rows[0]?.answer)
}
