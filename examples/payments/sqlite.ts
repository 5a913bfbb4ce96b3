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

/** better-sqlite3, or where that was not built for this Node, its own driver (22.13 and later). */
function openDatabase(file: string): Database {
  try {
    const BetterSqlite3 = createRequire(import.meta.url)('better-sqlite3') as Driver
    return new BetterSqlite3(file)
  } catch (error) {
    const own = process.getBuiltinModule('node:sqlite') as { readonly DatabaseSync: Driver } | undefined
    const { code } = error as { readonly code?: unknown }
    const isNotThere = code === 'MODULE_NOT_FOUND' || code === 'ERR_DLOPEN_FAILED'
    if (own === undefined || !isNotThere) throw error
    return new own.DatabaseSync(file)
  }
}
