import knex, { type Knex } from 'knex'
import { createPool } from 'mysql2/promise'
import { MySqlStore, type MySqlTransactions } from 'once-per-key/mysql'

const uri = process.env.DATABASE_URL ?? 'mysql://localhost/payments'

export const db = knex({ client: 'mysql2', connection: uri })
export const pool = createPool({ uri, connectionLimit: 4 }) // for the store alone

/** Such as `store.transaction(context, work, { isolationLevel: 'serializable' })`. */
export const transactions: MySqlTransactions<Knex.Transaction, Knex.TransactionConfig> = {
  transaction: (work, options) => db.transaction(work, options),
  run: (tx, { text, values }) => tx.raw(text, [...values] as Knex.RawBinding[]),
}

export const store = new MySqlStore({ pool, transactions })
