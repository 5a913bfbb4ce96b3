import { createPool } from 'mysql2/promise'
import { MySqlStore, type MySqlTransactions } from 'once-per-key/mysql'
import { DataSource, type EntityManager } from 'typeorm'

type IsolationLevel = Parameters<EntityManager['transaction']>[0]

const url = process.env.DATABASE_URL ?? 'mysql://localhost/payments'

export const dataSource = await new DataSource({ type: 'mysql', url }).initialize()
export const pool = createPool({ uri: url, connectionLimit: 4 }) // for the store alone

/** Such as `store.transaction(context, work, 'SERIALIZABLE')`. */
export const transactions: MySqlTransactions<EntityManager, IsolationLevel> = {
  transaction: (work, level) =>
    level === undefined ? dataSource.transaction(work) : dataSource.transaction(level, work),
  run: (manager, { text, values }) => manager.query(text, [...values]),
}

export const store = new MySqlStore({ pool, transactions })
