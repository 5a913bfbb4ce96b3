import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import { Pool } from 'pg'
import { Sequelize, type Transaction, type TransactionOptions } from 'sequelize'

const url = process.env.DATABASE_URL ?? 'postgres://localhost/payments'

export const sequelize = new Sequelize(url, { logging: false })
export const pool = new Pool({ connectionString: url, max: 4 }) // for the store alone
pool.on('error', console.error) // without a listener, an idle connection that breaks ends the process

/** Such as `store.transaction(context, work, { isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE })`. */
export const transactions: PostgresTransactions<Transaction, TransactionOptions> = {
  transaction: (work, options = {}) => sequelize.transaction(options, work),
  run: (transaction, { text, values }) => sequelize.query(text, { bind: [...values], transaction }),
}

export const store = new PostgresStore({ pool, transactions })
