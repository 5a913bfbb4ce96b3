import { type IsolationLevel, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import { Pool } from 'pg'

const connectionString = process.env.DATABASE_URL

const application = new Pool({ connectionString })
export const pool = new Pool({ connectionString, max: 4 }) // for the store alone
// A connection that breaks must not end the process, be it idle or in a transaction.
application.on('error', console.error).on('connect', (client) => client.on('error', console.error))
pool.on('error', console.error)

export interface Database {
  payouts: { id: string; amount: number }
}
export const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: application }) })

/** Such as `store.transaction(context, work, 'serializable')`. */
export const transactions: PostgresTransactions<Transaction<Database>, IsolationLevel> = {
  transaction(work, level) {
    const transaction = db.transaction()
    return (level === undefined ? transaction : transaction.setIsolationLevel(level)).execute(work)
  },
  run: (tx, { strings, values }) => sql(strings, ...values).execute(tx),
}

export const store = new PostgresStore({ pool, transactions })
