import knex, { type Knex } from 'knex'
import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import { Pool } from 'pg'

const connectionString = process.env.DATABASE_URL ?? 'postgres://localhost/payments'

export const db = knex({ client: 'pg', connection: { connectionString } })
export const pool = new Pool({ connectionString, max: 4 }) // for the store alone
pool.on('error', console.error) // without a listener, an idle connection that breaks ends the process

/** Such as `store.transaction(context, work, { isolationLevel: 'serializable' })`. */
export const transactions: PostgresTransactions<Knex.Transaction, Knex.TransactionConfig> = {
  transaction: (work, options) => db.transaction(work, options),
  run: (tx, { strings, values }) => tx.raw(strings.join('?'), values),
}

export const store = new PostgresStore({ pool, transactions })
