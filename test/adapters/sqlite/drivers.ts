import { createRequire } from 'node:module'
import type { SqliteDatabase } from 'once-per-key/sqlite'

export type DriverName = 'node:sqlite' | 'better-sqlite3' | 'libsql'

/** A database that a test opens and closes. */
export interface OpenDatabase extends SqliteDatabase {
  close(): unknown
}

export interface DatabaseOptions {
  readonly readOnly?: boolean
}

type Open = (file: string, options?: DatabaseOptions) => OpenDatabase

/**
 * The drivers that are there. Before Node 22.13, which brings `node:sqlite`, a package of the same interface stands for it.
 * ONCE_PER_KEY_BETTER_SQLITE3 names the folder of better-sqlite3, and ONCE_PER_KEY_LIBSQL that of libSQL's driver of the same interface:
 * they are binaries, so they are installed in `integrations`.
 */
export const DRIVERS: Readonly<Partial<Record<DriverName, Open>>> = Object.fromEntries(
  [
    ['node:sqlite', nodeSqlite()],
    ['better-sqlite3', betterSqlite3(process.env.ONCE_PER_KEY_BETTER_SQLITE3)],
    ['libsql', betterSqlite3(process.env.ONCE_PER_KEY_LIBSQL)],
  ].filter(([, open]) => open !== undefined),
)

export const DRIVER_NAMES = Object.keys(DRIVERS) as DriverName[]

/** For tests of something else than a driver. */
export const A_DRIVER = DRIVER_NAMES[0] as DriverName

export function openDatabase(driver: DriverName, file: string, options?: DatabaseOptions): OpenDatabase {
  const open = DRIVERS[driver]
  if (open === undefined) throw new Error(`${driver} cannot be loaded by Node ${process.version}.`)
  return open(file, options)
}

function nodeSqlite(): Open {
  const require = createRequire(import.meta.url)
  const { DatabaseSync } = (process.getBuiltinModule('node:sqlite') ?? require('@photostructure/sqlite')) as {
    readonly DatabaseSync: new (file: string, options: DatabaseOptions) => OpenDatabase
  }
  return (file, options = {}) => new DatabaseSync(file, options)
}

/** And what has its interface. */
function betterSqlite3(folder: string | undefined): Open | undefined {
  if (folder === undefined) return undefined
  const Database = createRequire(import.meta.url)(folder) as new (
    file: string,
    options?: { readonly readonly: boolean },
  ) => OpenDatabase
  try {
    // Not before it is opened, its binary is loaded.
    new Database(':memory:').close()
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_DLOPEN_FAILED') return undefined
    throw error
  }
  return (file, { readOnly = false } = {}) => new Database(file, { readonly: readOnly })
}
