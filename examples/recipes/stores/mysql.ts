import { createPool } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'

/** For the store alone: handlers that hold every connection of a shared pool would starve the store's commands. */
export const pool = createPool({ uri: process.env.DATABASE_URL ?? 'mysql://localhost/payments', connectionLimit: 4 })
/** The application's, for `store.transaction`. */
export const application = createPool({ uri: process.env.DATABASE_URL ?? 'mysql://localhost/payments' })
export const store = new MySqlStore({ pool, transactions: application })

await store.migrate() // or give MySqlStore.schemaSql() to your migration tool
