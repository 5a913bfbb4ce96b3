import { existsSync } from 'node:fs'
import { type SqliteDatabase, SqliteStore } from 'once-per-key/sqlite'
import { loadDriver } from '../driver.js'

export interface SqliteTarget {
  readonly kind: 'sqlite'
  readonly store: SqliteStore
  readonly file: string
  readonly prefix: string
  readonly database: SqliteDatabase
  close(): Promise<void>
}

/** What there must be: the tables; a file, which may have none yet; or nothing, since all is made. */
export type FilePrerequisite = 'tables' | 'file' | 'nothing'

export interface Access {
  readonly mustHave: FilePrerequisite
  /** Whether the command may change records. */
  readonly changes: boolean
}

/** A look never makes tables in a file that is another's. */
export async function openSqlite(
  file: string,
  { mustHave, changes }: Access,
  prefix = 'once_per_key_',
): Promise<SqliteTarget> {
  if (mustHave !== 'nothing' && !existsSync(file)) throw new Error(`There is no file ${file}.`)
  // When a connection that may write is the last to close, SQLite moves the -wal file into the database. One that may
  // not would leave such a file behind where there is none.
  const database = await openDatabase(file, !changes && existsSync(`${file}-wal`))
  const tables = database.prepare('SELECT 1 FROM main.sqlite_schema WHERE name = ?')
  if (mustHave === 'tables' && tables.get(`${prefix}records`) === undefined) {
    database.close()
    throw new Error(`${file} has no table ${prefix}records: is it the right file, and the right --prefix?`)
  }
  const store = new SqliteStore({ database, prefix, sweeps: false })
  return { kind: 'sqlite', store, file, prefix, database, close: async () => void database.close() }
}

type Closable = SqliteDatabase & { close(): unknown }

async function openDatabase(file: string, readOnly: boolean): Promise<Closable> {
  const builtIn = process.getBuiltinModule('node:sqlite') as
    | { readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => Closable }
    | undefined
  if (builtIn !== undefined) return new builtIn.DatabaseSync(file, { readOnly })
  const { default: Database } = await loadDriver('better-sqlite3', () => import('better-sqlite3'))
  return new Database(file, { readonly: readOnly }) as Closable
}
