import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/mysql2'
import { createPool } from 'mysql2/promise'
import { MySqlStore, type MySqlTransactions } from 'once-per-key/mysql'

const uri = process.env.DATABASE_URL ?? 'mysql://localhost/payments'

export const application = createPool({ uri })
export const pool = createPool({ uri, connectionLimit: 4 }) // for the store alone
export const db = drizzle({ client: application })
type Transaction = typeof db.transaction
type Tx = Parameters<Parameters<Transaction>[0]>[0]

/** Such as `store.transaction(context, work, { isolationLevel: 'serializable' })`. */
export const transactions: MySqlTransactions<Tx, Parameters<Transaction>[1]> = {
  transaction: (work, options) => db.transaction(work, options),
  run: (tx, { strings, values }) => tx.execute(sql(strings, ...values)),
}

export const store = new MySqlStore({ pool, transactions })
