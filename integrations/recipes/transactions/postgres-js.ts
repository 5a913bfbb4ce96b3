import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import postgres, { type TransactionSql } from 'postgres'

const url = process.env.DATABASE_URL ?? 'postgres://localhost/payments'

// Prepared, a COMMIT that a pooler sends to another session is rolled back, and postgres.js takes it for done.
export const sql = postgres(url, { prepare: false })
export const storeSql = postgres(url, { max: 4 }) // for the store alone

/** Such as `store.transaction(context, work, 'isolation level serializable')`. */
export const transactions: PostgresTransactions<TransactionSql, string> = {
  transaction: (work, options = '') => sql.begin(options, work),
  run: (tx, { text, values }) => tx.unsafe(text, [...values]),
}

export const store = new PostgresStore({ query: (text, values) => storeSql.unsafe(text, values), transactions })
