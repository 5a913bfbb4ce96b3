import { type ResultCode, resultCodeOf, wordsOf } from './client.js'

/**
 * What went wrong between the store and its database. Closed: a new one is a minor release. Unless said otherwise, nothing
 * was changed.
 *
 * - `connection_in_use`: a transaction of the application's, or a statement that it is still reading from, is open on the
 *   connection. Give the store a connection of its own.
 * - `database_busy`: other connections wrote to the file all the time, or one holds its lock.
 * - `database_closed`: the connection was closed.
 * - `database_full`: the disk or the database is full, or memory ran out.
 * - `read_only`: the file or the connection cannot be written to.
 * - `database_corrupt`: the file is damaged, or no database.
 * - `database_unsuitable`: the database cannot be in WAL mode, or not be made durable.
 * - `schema_unknown`: the store's tables are of a later version of the library, or are not the store's.
 * - `record_unreadable`: a record is damaged, or of a format of a later version. It was left as it is.
 * - `database_failed`: any other error, such as one of the disk; what was sent may have been done. `cause` has it.
 *
 * Inside a transaction of a run, all of which they undo:
 * - `transaction_unmarked`: it is not the transaction any more that was opened for the run.
 * - `nothing_written`: completed by hand, where no transaction was open or nothing had been written.
 * - `record_absent`: there is no record: its retention is over, or the database is another one.
 * - `record_taken`: another attempt owns the record.
 * - `record_ended`: the run has ended already.
 */
export type SqliteStoreErrorCode =
  | 'connection_in_use'
  | 'database_busy'
  | 'database_closed'
  | 'database_full'
  | 'read_only'
  | 'database_corrupt'
  | 'database_unsuitable'
  | 'schema_unknown'
  | 'record_unreadable'
  | 'database_failed'
  | 'transaction_unmarked'
  | 'nothing_written'
  | 'record_absent'
  | 'record_taken'
  | 'record_ended'

/** Decide by `code`; `cause` is the driver's own error. Its message holds no key and no body. */
export class SqliteStoreError extends Error {
  override readonly name = 'SqliteStoreError'
  readonly code: SqliteStoreErrorCode

  constructor(code: SqliteStoreErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** What an error of a driver means, and what to do about it. */
export function storeError(error: unknown): SqliteStoreError {
  if (error instanceof SqliteStoreError) return error
  const code = codeOf(error)
  return new SqliteStoreError(code, `${ADVICE[code]} SQLite said: ${wordsOf(error)}.`, { cause: error })
}

/** Another connection was in the way, and the same command may not meet it again. */
export function isBusy(error: unknown): boolean {
  const result = resultCodeOf(error)
  return result === 'SQLITE_BUSY' || result === 'SQLITE_LOCKED'
}

function codeOf(error: unknown): DriversCode {
  const words = wordsOf(error)
  if (IS_OPEN.test(words)) return 'connection_in_use'
  if (IS_CLOSED.test(words)) return 'database_closed'
  const result = resultCodeOf(error)
  return (result && BY_RESULT[result]) ?? 'database_failed'
}

/** SQLite has no result code for it; the last is better-sqlite3's. */
const IS_OPEN = /(within|inside) a transaction|connection is busy executing a query/

/** The drivers': SQLite itself is never asked. */
const IS_CLOSED = /not open|has been finalized/

const BY_RESULT: Readonly<Partial<Record<ResultCode, DriversCode>>> = {
  SQLITE_BUSY: 'database_busy',
  SQLITE_LOCKED: 'database_busy',
  SQLITE_NOMEM: 'database_full',
  SQLITE_READONLY: 'read_only',
  SQLITE_CORRUPT: 'database_corrupt',
  SQLITE_FULL: 'database_full',
  SQLITE_NOTADB: 'database_corrupt',
}

/** Those that a driver's error can mean. */
type DriversCode = Exclude<
  SqliteStoreErrorCode,
  'database_unsuitable' | 'schema_unknown' | 'transaction_unmarked' | 'nothing_written' | `record_${string}`
>

const ADVICE: Readonly<Record<DriversCode, string>> = {
  connection_in_use:
    'The application has a transaction open on the connection, or still reads from a statement: the store joins neither. ' +
    'Give the store a connection of its own to the same file, or keep no transaction open across an await.',
  database_busy:
    'Other connections wrote to the database all the time, or one of them holds its lock: keep transactions short.',
  database_closed: 'The connection was closed: close it behind `await once.idle()`.',
  database_full: 'The database or its disk is full, or memory ran out.',
  read_only:
    'The database cannot be written to: look at the rights of the file and of its folder, and how it was opened.',
  database_corrupt: 'The file is damaged, or no database of SQLite: restore it from a backup.',
  database_failed: 'The database failed.',
}
