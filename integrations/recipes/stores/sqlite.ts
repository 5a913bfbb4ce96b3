import Database from 'better-sqlite3'
import { SqliteStore } from 'once-per-key/sqlite'

/** Or, on Node 22.13 and later, without a package: `new DatabaseSync('payments.db')` of node:sqlite. */
export const database = new Database(process.env.SQLITE_FILE ?? 'payments.db')
export const store = new SqliteStore({ database })
