import { createRequire } from 'node:module'
import type { SqliteDatabase } from 'once-per-key/sqlite'

export type DriverName = 'node:sqlite' | 'better-sqlite3'

/** A database that a test opens and closes. */
export interface OpenDatabase extends SqliteDatabase {
  close(): unknown
}

export interface DatabaseOptions {
  readonly readOnly?: boolean
}

type Open = (file: string, options?: DatabaseOptions) => OpenDatabase

/** The drivers that this Node can load: `node:sqlite` from 22.13 on, better-sqlite3 where it was built for it. */
export const DRIVERS: Readonly<Partial<Record<DriverName, Open>>> = Object.fromEntries(
  [
    ['node:sqlite', nodeSqlite()],
    ['better-sqlite3', betterSqlite3()],
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

function nodeSqlite(): Open | undefined {
  const found = process.getBuiltinModule('node:sqlite') as
    | { readonly DatabaseSync: new (file: string, options: DatabaseOptions) => OpenDatabase }
    | undefined
  return found && ((file, options = {}) => new found.DatabaseSync(file, options))
}

function betterSqlite3(): Open | undefined {
  const Database = createRequire(import.meta.url)('better-sqlite3') as new (
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
