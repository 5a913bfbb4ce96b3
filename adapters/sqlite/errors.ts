import { recognizeAcrossCopies, StoreError } from '../../src/core/index.js'
import {
  type DatabaseErrorCodes,
  findClientMessage,
  findErrorCode,
  NOTHING_WRITTEN_INSIDE,
  OWNERSHIP_ERRORS,
} from '../sql/errors.js'
import { findResultCode } from './client.js'

/**
 * What went wrong between the store and its database. A closed set: a new code is a minor release. Unless said
 * otherwise, nothing was changed.
 *
 * - `connection_in_use`: an application's transaction, or a statement that it is still reading from, is open on the
 *   connection. Give the store its own connection.
 * - `database_busy`: other connections kept writing to the file, or one holds its lock.
 * - `database_closed`: the connection was closed.
 * - `database_full`: the disk or the database is full, or memory ran out.
 * - `read_only`: the file or the connection cannot be written to.
 * - `database_corrupt`: the file is damaged, or not a database.
 * - `database_unsuitable`: the database cannot be put into WAL mode, or not be made durable, or its file is no longer in its place.
 * - `schema_unknown`: the store's tables are of a later version of the library, or are not the store's.
 * - `record_unreadable`: a record is damaged, or of a later version's format. It was left unchanged.
 * - `database_failed`: any other error, for example of the disk; what was sent may have taken effect. `cause` has it.
 *
 * Inside a run's transaction, which each of them rolls back:
 * - `transaction_unmarked`: the transaction that was opened for the run is no longer open.
 * - `nothing_written`: nothing was written in it, or `completeIn` was called without an open transaction, or on a connection that has not written
 *   anything yet; on the store's, nothing since the store's last command.
 * - `record_absent`: there is no record: its retention has ended, or this is another database.
 * - `record_taken`: another attempt owns the record.
 * - `record_ended`: the run has already ended.
 */
export type SqliteStoreErrorCode = keyof typeof ADVICE

/** Check `code`; `cause` is the driver's own error. The message contains no key and no body. */
export class SqliteStoreError extends StoreError<SqliteStoreErrorCode> {
  override readonly name = 'SqliteStoreError'
}
recognizeAcrossCopies(SqliteStoreError, 'SqliteStoreError')

export function storeError(error: unknown): SqliteStoreError {
  if (error instanceof SqliteStoreError) return error
  const code = toErrorCode(error)
  return new SqliteStoreError(code, `${ADVICE[code]} SQLite said: ${findClientMessage(error)}.`, { cause: error })
}

/** Whether another connection blocked the command, so that a retry may succeed. */
export function isBusy(error: unknown): boolean {
  const result = findResultCode(error)
  return result === 'SQLITE_BUSY' || result === 'SQLITE_LOCKED'
}

function toErrorCode(error: unknown): SqliteStoreErrorCode {
  const words = findClientMessage(error)
  if (IS_OPEN.test(words)) return 'connection_in_use'
  if (IS_CLOSED.test(words)) return 'database_closed'
  const result = findResultCode(error)
  return (result && findErrorCode(OWN_CODES, result)) ?? 'database_failed'
}

/** SQLite has no result code for this; the last one is better-sqlite3's message. */
const IS_OPEN = /(within|inside) a transaction|connection is busy executing a query/

/** The drivers' own messages: they do not ask SQLite. */
const IS_CLOSED = /not open|is closed|has been finalized/

const OWN_CODES: DatabaseErrorCodes<SqliteStoreErrorCode> = {
  database_busy: 'SQLITE_BUSY SQLITE_LOCKED',
  database_full: 'SQLITE_FULL SQLITE_NOMEM',
  read_only: 'SQLITE_READONLY',
  database_corrupt: 'SQLITE_CORRUPT SQLITE_NOTADB',
}

export const ADVICE = {
  connection_in_use:
    'The application has a transaction open on the connection, or is still reading from a statement; the store never joins one. ' +
    'Give the store its own connection to the same file, or keep no transaction open across an await.',
  database_busy:
    'Other connections kept writing to the database, or one of them holds its lock: keep transactions short.',
  database_closed: 'The connection was closed: close it after `await once.idle()`.',
  database_full: 'The database or its disk is full, or memory ran out.',
  read_only:
    'The database cannot be written to: check the permissions of the file and its folder, and how it was opened.',
  database_corrupt: 'The file is damaged, or not a SQLite database: restore it from a backup.',
  database_failed: 'The database failed.',
  database_unsuitable:
    'The store needs a file on a local disk, where its -wal and -shm files can be created beside it.',
  schema_unknown: 'Use the version of the library that created them, or another `prefix`.',
  record_unreadable: 'The record cannot be read, and was left unchanged.',
  transaction_unmarked:
    'The transaction that was opened for this run is no longer open: a statement of the work committed it, rolled it ' +
    'back, or failed in a way that rolled it back. Leave BEGIN, COMMIT and ROLLBACK to the store, and rethrow such errors.',
  nothing_written: NOTHING_WRITTEN_INSIDE,
  ...OWNERSHIP_ERRORS,
}
