import { type IsolationLevel, Kysely, MysqlDialect, sql, type Transaction } from 'kysely'
import { createPool as createCallbackPool } from 'mysql2'
import { createPool } from 'mysql2/promise'
import { MySqlStore, type MySqlTransactions } from 'once-per-key/mysql'

const uri = process.env.DATABASE_URL ?? 'mysql://localhost/payments'

export const pool = createPool({ uri, connectionLimit: 4 }) // for the store alone

export interface Database {
  payouts: { id: string; amount: number }
}
export const db = new Kysely<Database>({ dialect: new MysqlDialect({ pool: createCallbackPool({ uri }) }) })

/** Such as `store.transaction(context, work, 'serializable')`. */
export const transactions: MySqlTransactions<Transaction<Database>, IsolationLevel> = {
  transaction(work, level) {
    const transaction = db.transaction()
    return (level === undefined ? transaction : transaction.setIsolationLevel(level)).execute(work)
  },
  run: (tx, { strings, values }) => sql(strings, ...values).execute(tx),
}

export const store = new MySqlStore({ pool, transactions })
