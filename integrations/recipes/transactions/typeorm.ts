import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import { Pool } from 'pg'
import { DataSource, type EntityManager } from 'typeorm'

type IsolationLevel = Parameters<EntityManager['transaction']>[0]

const url = process.env.DATABASE_URL ?? 'postgres://localhost/payments'

export const dataSource = await new DataSource({ type: 'postgres', url }).initialize()
export const pool = new Pool({ connectionString: url, max: 4 }) // for the store alone
pool.on('error', console.error) // without a listener, an idle connection that breaks ends the process

/** Such as `store.transaction(context, work, 'SERIALIZABLE')`. */
export const transactions: PostgresTransactions<EntityManager, IsolationLevel> = {
  transaction: (work, level) =>
    level === undefined ? dataSource.transaction(work) : dataSource.transaction(level, work),
  run: (manager, { text, values }) => manager.query(text, [...values]),
}

export const store = new PostgresStore({ pool, transactions })
