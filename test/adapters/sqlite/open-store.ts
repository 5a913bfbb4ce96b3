import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteStore, type SqliteStoreOptions } from 'once-per-key/sqlite'
import { onTestFinished } from 'vitest'
import { type DatabaseOptions, type DriverName, type OpenDatabase, openDatabase } from './drivers.js'

/** A file of its own, and connections to it, for as long as a test takes. */
export interface Opened {
  readonly file: string
  readonly database: OpenDatabase
  readonly store: SqliteStore
  /** Another connection to the same file. */
  connect(options?: DatabaseOptions): OpenDatabase
  /** Another store, on a connection of its own. */
  storeOn(options?: Partial<SqliteStoreOptions>): SqliteStore
  /** The rows of a statement, by a connection that no store has. */
  query(sql: string): readonly Readonly<Record<string, unknown>>[]
}

export function openStore(driver: DriverName, options: Partial<SqliteStoreOptions> = {}): Opened {
  const { folder, remove } = newFolder()
  const file = join(folder, 'records.db')
  const opened: OpenDatabase[] = []
  onTestFinished(() => {
    for (const each of opened) closed(each)
    remove()
  })

  function connect(given?: DatabaseOptions): OpenDatabase {
    const database = openDatabase(driver, file, given)
    opened.push(database)
    return database
  }

  const database = connect()
  let looking: OpenDatabase | undefined
  return {
    file,
    database,
    store: new SqliteStore({ database, ...options }),
    connect,
    storeOn: (more) => new SqliteStore({ database: connect(), ...options, ...more }),
    query(sql) {
      looking ??= connect()
      return looking.prepare(sql).all() as readonly Readonly<Record<string, unknown>>[]
    },
  }
}

export function newFolder(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-sqlite-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

function closed(database: OpenDatabase): void {
  try {
    database.close()
  } catch {} // By the test itself.
}
