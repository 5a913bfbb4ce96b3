import { createPool } from 'mysql2/promise'
import { MySqlStore, type MySqlTransactions } from 'once-per-key/mysql'
import { Sequelize, type Transaction, type TransactionOptions } from 'sequelize'

const uri = process.env.DATABASE_URL ?? 'mysql://localhost/payments'

export const sequelize = new Sequelize(uri, { logging: false })
export const pool = createPool({ uri, connectionLimit: 4 }) // for the store alone

/** Such as `store.transaction(context, work, { isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE })`. */
export const transactions: MySqlTransactions<Transaction, TransactionOptions> = {
  transaction: (work, options = {}) => sequelize.transaction(options, work),
  // Not `bind`, which prepares the statement.
  run: (transaction, { text, values }) => sequelize.query(text, { replacements: [...values], transaction }),
}

export const store = new MySqlStore({ pool, transactions })
