import { recognizeAcrossCopies, StoreError } from '../../src/core/index.js'
import {
  type DatabaseErrorCodes,
  type ErrorFields,
  findClientMessage,
  findErrorCode,
  listCauses,
  NOTHING_WRITTEN_INSIDE,
  OWNERSHIP_ERRORS,
  redactErrorValues,
} from '../sql/errors.js'

/**
 * What went wrong between the store and its database. A closed set: a new code is a minor release. Unless said
 * otherwise, nothing was changed.
 *
 * - `schema_missing`: the tables do not exist in the database of the connection. Call `migrate()`, or run `schemaSql()`.
 * - `permission_denied`: the user may not use, or not create, what the store needs.
 * - `read_only`: the session is read-only, or the server a replica.
 * - `database_unsuitable`: the server is too old, or its tables or settings cannot keep records; the message names them.
 * - `connection_in_use`: a transaction of the application is open on a connection of the store's pool.
 * - `record_unreadable`: a record is damaged, or of a later version's format. It was left unchanged.
 * - `record_locked`: a transaction holds the record, and did not end in time.
 * - `contended`: the command lost to other commands repeatedly (deadlocks, changes in between).
 * - `connections_exhausted`: the server, or the pool, accepts no more connections.
 * - `connection_lost`: the connection was refused or broke; what was sent over it may have taken effect.
 * - `packet_too_large`: the command is larger than the server's `max_allowed_packet`.
 * - `database_full`: the database is out of space or memory.
 * - `database_failed`: any other error of the database or of the client; `cause` has it.
 *
 * Inside the application's transaction, which each of them rolls back:
 * - `transaction_unmarked`: it is not the transaction that was opened for the run, or it was committed or rolled back meanwhile.
 * - `nothing_written`: no statement that writes was sent in it before the record was completed: it is not the transaction of the
 *   effects, or there were none.
 * - `record_absent`: there is no record: its retention has ended, or this is another database.
 * - `record_taken`: another attempt owns the record.
 * - `record_ended`: the run has already ended.
 */
export type MySqlStoreErrorCode = keyof typeof ADVICE

/** Check `code`; `cause` is the client's own error. The message contains no key and no body. */
export class MySqlStoreError extends StoreError<MySqlStoreErrorCode> {
  override readonly name = 'MySqlStoreError'
}
recognizeAcrossCopies(MySqlStoreError, 'MySqlStoreError')

/** Before a statement is sent: the server ends the session of one that is too large, or the client does. */
export function assertStatementFits(bytes: number, maxStatementBytes: number): void {
  if (bytes <= maxStatementBytes) return
  const sizes = `It has ${bytes} bytes, and may have ${maxStatementBytes}.`
  throw new MySqlStoreError('packet_too_large', `${ADVICE.packet_too_large} ${sizes}`)
}

export function transactionUnmarkedError(cause?: unknown): MySqlStoreError {
  return new MySqlStoreError('transaction_unmarked', ADVICE.transaction_unmarked, { cause })
}

export function transactionNotOpenError(cause?: unknown): MySqlStoreError {
  return new MySqlStoreError(
    'nothing_written',
    'No transaction is open on this connection: complete the record as the last statement of the one with the effects.',
    { cause },
  )
}

/** An error that a client has for a statement of a store, of which nothing is left in it. */
export function redactStatementError(error: unknown): unknown {
  return error instanceof MySqlStoreError ? error : redactErrorValues(error)
}

export function storeError(error: unknown): MySqlStoreError {
  if (error instanceof MySqlStoreError) return error
  const code = toStoreErrorCode(error)
  return new MySqlStoreError(code, `${ADVICE[code]} The client said: ${findClientMessage(error)}`, { cause: error })
}

function toStoreErrorCode(error: unknown): MySqlStoreErrorCode {
  const number = findErrorNumber(error)
  if (number === null) return isPoolsRefusal(error) ? 'connections_exhausted' : 'connection_lost'
  return findErrorCode(OWN_CODES, number) ?? 'database_failed'
}

/** The server's number of an error, wherever the client put it; `null` if the error is not the server's. */
export function findErrorNumber(error: unknown): number | null {
  for (const each of listCauses(error)) {
    const number = readErrorNumber(each)
    if (number !== null) return number
  }
  return null
}

/** Node's own errors have negative numbers; Prisma's adapters say it as text. */
function readErrorNumber({ errno, code, originalCode }: ErrorFields): number | null {
  for (const value of [errno, originalCode, code]) {
    const number = typeof value === 'string' && /^\d{4}$/.test(value) ? Number(value) : value
    if (typeof number === 'number' && number >= 1000 && number < 2000) return number
    if (typeof number === 'number' && number >= 3000 && number < 5000) return number
  }
  return null
}

/**
 * Whether another transaction holds the row: 1205 ends the statement, and with `innodb_rollback_on_timeout` its
 * transaction; 3572 is MySQL's for NOWAIT.
 */
export function isLocked(error: unknown): boolean {
  const number = findErrorNumber(error)
  return number === LOCK_WAIT_TIMEOUT || number === LOCK_NOWAIT
}

export function isDuplicate(error: unknown): boolean {
  return findErrorNumber(error) === DUPLICATE_ENTRY
}

/** An error that rolled the statement back, and that a retry may not meet: 1213, and 1020 with `innodb_snapshot_isolation`. */
export function isConflict(error: unknown): boolean {
  const number = findErrorNumber(error)
  return number === DEADLOCK || number === RECORD_CHANGED
}

/** Whether the connection is still usable after this error: the server refused one statement. */
export function isStatementRefusal(error: unknown): boolean {
  const number = findErrorNumber(error)
  if (number === null || findErrorCode(OWN_CODES, number) === 'connection_lost') return false
  return !listCauses(error).some(({ fatal }) => fatal === true)
}

export function isReadOnly(error: unknown): boolean {
  return storeError(error).code === 'read_only'
}

/** Of mysql2's pool: `waitForConnections: false`, or its `queueLimit`. */
function isPoolsRefusal(error: unknown): boolean {
  return listCauses(error).some(({ message }) => /No connections available|Queue limit reached/.test(String(message)))
}

const RECORD_CHANGED = 1020
const DUPLICATE_ENTRY = 1062
const LOCK_WAIT_TIMEOUT = 1205
const DEADLOCK = 1213
const LOCK_NOWAIT = 3572

/** https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html, https://mariadb.com/kb/en/mariadb-error-code-reference/ */
const OWN_CODES: DatabaseErrorCodes<MySqlStoreErrorCode> = {
  schema_missing: '1046 1049 1054 1146',
  permission_denied: '1044 1045 1142 1143 1227',
  read_only: '1290 1792 1836',
  record_locked: `${LOCK_WAIT_TIMEOUT} ${LOCK_NOWAIT}`,
  contended: `${RECORD_CHANGED} ${DEADLOCK}`,
  connections_exhausted: '1040 1203 1226',
  connection_lost: '1053 1077 1152 1158 1159 1160 1161 1184 1317 1927 3169 4031',
  packet_too_large: '1153',
  database_full: '1021 1037 1038 1041 1114 1206',
}

export const ADVICE = {
  schema_missing:
    'There is no such database, or no tables of the store in it: call `await store.migrate()`, or run ' +
    '`MySqlStore.schemaSql()` with your migration tool.',
  permission_denied:
    'The user needs access to the database; on the tables of the store SELECT, INSERT, UPDATE and DELETE, and CREATE only for `migrate()`.',
  read_only: 'The session is read-only, or the server a replica: connect to the primary.',
  database_unsuitable: 'The database cannot keep records.',
  record_unreadable: 'The record cannot be read.',
  record_locked: 'A transaction holds the record, and did not end in time: keep transactions short.',
  contended: 'The command lost to other commands repeatedly.',
  connections_exhausted: 'The server, or the pool, accepts no more connections: use smaller pools.',
  connection_lost: 'The database cannot be reached, or the connection broke.',
  packet_too_large: 'The command is larger than `max_allowed_packet`: raise it, or lower `maxAnswerBytes`.',
  database_full: 'The database is out of space or memory.',
  database_failed: 'The database failed.',
  connection_in_use:
    'A transaction is open on a connection of the store: the application gave the connection back to the pool without ending it, or has ' +
    'switched `autocommit` off. The connection was closed, and nothing was changed. Give the store a pool of its own.',
  transaction_unmarked:
    'The transaction that was opened for this run is no longer open: a statement of the work committed it (DDL does) or rolled it back ' +
    '(a deadlock does). Leave COMMIT and ROLLBACK to the store, and rethrow errors of the database.',
  nothing_written: NOTHING_WRITTEN_INSIDE,
  ...OWNERSHIP_ERRORS,
}
