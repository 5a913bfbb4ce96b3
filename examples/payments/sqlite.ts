import { createRequire } from 'node:module'
import { type SqliteDatabase, SqliteStore } from 'once-per-key/sqlite'
import type { Logger } from 'pino'
import type { Backing } from './backing.js'
import { sqliteLedger } from './sqlite-ledger.js'

type Database = SqliteDatabase & { close(): unknown }
type Driver = new (file: string) => Database

/** Records and books in a file, without a server: what an operation writes commits with its record, and survives a restart. */
export async function openSqlite(file: string, logger: Logger): Promise<Backing> {
  const database = openDatabase(file)
  const store = new SqliteStore({ database })
  await store.migrate()
  database.exec('PRAGMA busy_timeout = 1000')
  const ledger = sqliteLedger(database, store)
  logger.info({ file }, 'records and books are in a file of sqlite')
  return {
    store,
    ledger,
    async close() {
      database.close()
    },
  }
}

/** Node's own driver, or before 22.13 a package of the same interface, which needs no compiler either. */
function openDatabase(file: string): Database {
  const require = createRequire(import.meta.url)
  const { DatabaseSync } = (process.getBuiltinModule('node:sqlite') ?? require('@photostructure/sqlite')) as {
    readonly DatabaseSync: Driver
  }
  return new DatabaseSync(file)
}
