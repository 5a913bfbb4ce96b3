import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import { Pool } from 'pg'

const connectionString = process.env.DATABASE_URL

const application = new Pool({ connectionString })
export const pool = new Pool({ connectionString, max: 4 }) // for the store alone
// A connection that breaks must not end the process, be it idle or in a transaction.
application.on('error', console.error).on('connect', (client) => client.on('error', console.error))
pool.on('error', console.error)

export const db = drizzle(application)
type Transaction = typeof db.transaction
type Tx = Parameters<Parameters<Transaction>[0]>[0]

/** Such as `store.transaction(context, work, { isolationLevel: 'serializable' })`. */
export const transactions: PostgresTransactions<Tx, Parameters<Transaction>[1]> = {
  transaction: (work, options) => db.transaction(work, options),
  run: (tx, { strings, values }) => tx.execute(sql(strings, ...values)),
}

export const store = new PostgresStore({ pool, transactions })
