import { findClientMessage } from '../sql/errors.js'
import type { Row } from '../sql/row.js'

/**
 * The members of an open `DatabaseSync` of `node:sqlite`, or of an open `Database` of better-sqlite3, that the store
 * uses.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

/** The store gives it a `SqliteValue` for each parameter. TypeScript 5 takes the drivers' statements only so. */
export interface SqliteStatement {
  // biome-ignore lint/suspicious/noExplicitAny: drivers declare the values that they take differently
  get(...values: any[]): unknown
  // biome-ignore lint/suspicious/noExplicitAny: as above
  all(...values: any[]): unknown
  // biome-ignore lint/suspicious/noExplicitAny: as above
  run(...values: any[]): unknown
}

export type SqliteValue = string | number | null | Uint8Array

/**
 * Prepares a statement that returns rows as objects and numbers as numbers, whatever defaults the application has set.
 */
export function prepareStatement(database: SqliteDatabase, sql: string): SqliteStatement {
  const statement = database.prepare(sql) as SqliteStatement & Partial<Record<Mode, (on: boolean) => void>>
  for (const mode of MODES) statement[mode]?.(false)
  return statement
}

type Mode = (typeof MODES)[number]
/** node:sqlite has the first two, better-sqlite3 the third. */
const MODES = ['setReadBigInts', 'setReturnArrays', 'safeIntegers'] as const

const EXPECTED =
  'an open DatabaseSync of node:sqlite, or an open Database of better-sqlite3, on a file of this machine: ' +
  "`new DatabaseSync('payments.db')`"

const IN_MEMORY = 'a database without a file (:memory:, or a temporary one), which keeps nothing'

export function findDatabaseFault(
  value: unknown,
): string | { readonly expected: string; readonly seen: string } | null {
  if (!hasMethods(value)) return EXPECTED
  try {
    const databases = prepareStatement(value, 'PRAGMA database_list').all() as readonly Row[]
    const main = databases.find(({ name }) => name === 'main')
    if (main === undefined) return EXPECTED
    return main.file === '' ? { expected: EXPECTED, seen: IN_MEMORY } : null
  } catch (error) {
    return { expected: EXPECTED, seen: `one that failed (${findClientMessage(error)})` }
  }
}

function hasMethods(value: unknown): value is SqliteDatabase {
  if (typeof value !== 'object' || value === null) return false
  const { exec, prepare } = value as Partial<SqliteDatabase>
  return typeof exec === 'function' && typeof prepare === 'function'
}

/** SQLite's primary result codes that mean something to the store: https://www.sqlite.org/rescode.html */
const RESULTS = {
  SQLITE_ERROR: 1,
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_NOMEM: 7,
  SQLITE_READONLY: 8,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_NOTADB: 26,
} as const

type ResultCode = keyof typeof RESULTS

/** An error's primary result code; `null` if it is not one of these, or not SQLite's. */
export function findResultCode(error: unknown): ResultCode | null {
  if (typeof error !== 'object' || error === null) return null
  // node:sqlite has a number with the extended code in its upper bits, better-sqlite3 a name: SQLITE_READONLY_DBMOVED.
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown }
  const names = Object.keys(RESULTS) as ResultCode[]
  const isIt = (name: ResultCode) =>
    typeof errcode === 'number' ? (errcode & 0xff) === RESULTS[name] : `${code}_`.startsWith(`${name}_`)
  return names.find(isIt) ?? null
}

/** A row whose bytes are a `Uint8Array`: libSQL's driver has them so in a single row, and as an `ArrayBuffer` in a list. */
export function convertBlobs<Found extends Row | undefined>(row: Found): Found {
  for (const [name, value] of Object.entries(row ?? {})) {
    if (value instanceof ArrayBuffer) Reflect.set(row as Row, name, new Uint8Array(value))
  }
  return row
}
