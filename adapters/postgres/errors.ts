import { recognizeAcrossCopies, StoreError } from '../../src/core/index.js'
import {
  type DatabaseErrorCodes,
  findClientMessage,
  findErrorCode,
  isEndedByWork,
  listCauses,
  OWNERSHIP_ERRORS,
  redactErrorValues,
} from '../sql/errors.js'

const READ_ONLY = '25006'

/**
 * What went wrong between the store and its database. A closed set: a new code is a minor release. Unless said
 * otherwise, nothing was changed.
 *
 * - `schema_missing`: the schema, or a table or column in it, does not exist. Call `migrate()`, or run `schemaSql()`.
 * - `permission_denied`: the role may not use, or not create, what the store needs.
 * - `read_only`: the session is read-only, or the server a replica.
 * - `record_unreadable`: a record is damaged, or of a later version's format. It was left unchanged.
 * - `record_locked`: a transaction holds the record, and did not end in time.
 * - `contended`: the command lost to other commands repeatedly (serialization failures, deadlocks).
 * - `statement_unprepared`: a pooler gave the prepared statement to another session (`prepares`).
 * - `timed_out`: the database, or the client, cancelled the command because it took too long.
 * - `connections_exhausted`: there was no connection in time, or the database accepts no more.
 * - `connection_lost`: the connection was refused or broke; what was sent over it may have taken effect.
 * - `database_full`: the database is out of space or memory.
 * - `client_unsuitable`: the client returned an unknown format; what was sent may have taken effect.
 * - `database_failed`: any other error of the database or of the client; `cause` has it.
 *
 * Inside the application's transaction, which each of them rolls back:
 * - `transaction_unmarked`: it is not the transaction that was opened for the run, or it was rolled back meanwhile.
 * - `transaction_taken`: it is marked for another run.
 * - `nothing_written`: nothing was written in it before the record was completed: it is not the transaction of the effects, or
 *   there were none.
 * - `record_absent`: there is no record: its retention has ended, or this is another database.
 * - `record_taken`: another attempt owns the record.
 * - `record_ended`: the run has already ended.
 * - `transaction_rolled_back`: a statement in it had failed, so its COMMIT rolled it back; or its session had ended before.
 */
export type PostgresStoreErrorCode = keyof typeof ADVICE

/** Check `code`; `cause` is the client's own error. The message contains no key and no body. */
export class PostgresStoreError extends StoreError<PostgresStoreErrorCode> {
  override readonly name = 'PostgresStoreError'
}
recognizeAcrossCopies(PostgresStoreError, 'PostgresStoreError')

/** `isSecret`: the statement has values, which must not be shown. What was raised is read before: it stands in a quotation. */
export function storeError(error: unknown, schema: string, isSecret = true): PostgresStoreError {
  if (error instanceof PostgresStoreError) return error
  const code = toStoreErrorCode(error)
  const raised = findRaisedReason(error)
  const cause = isSecret ? redactErrorValues(error) : error
  const said = raised === undefined ? ` The client said: ${findClientMessage(cause)}` : raised.detail
  return new PostgresStoreError(code, `${ADVICE[code].replaceAll('{schema}', schema)}${said}`, { cause })
}

function toStoreErrorCode(error: unknown): PostgresStoreErrorCode {
  if (error instanceof PostgresStoreError) return error.code
  const state = findSqlState(error)
  const raised = findRaisedReason(error)
  if (raised !== undefined) return raised.code
  if (state !== null) return findErrorCode(OWN_CODES, state, state.slice(0, 2)) ?? 'database_failed'
  if (isPoolTimeout(error)) return 'connections_exhausted'
  if (isEndedByWork(error)) return 'transaction_unmarked'
  return isLostConnection(error) ? 'connection_lost' : 'database_failed'
}

/**
 * By SQLSTATE, or by its class, the first two characters: https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const OWN_CODES: DatabaseErrorCodes<PostgresStoreErrorCode> = {
  schema_missing: '3F000 42P01 42703 42804 42883',
  permission_denied: '42501',
  read_only: READ_ONLY,
  record_locked: '55P03',
  contended: '40001 40P01',
  statement_unprepared: '26000 42P05',
  timed_out: '57014',
  connections_exhausted: '53300',
  connection_lost: '08 57P01 57P02 57P03',
  database_full: '53',
  database_failed: '08P01',
  transaction_rolled_back: '25P02',
}

export const ADVICE = {
  schema_missing:
    'The schema "{schema}" does not exist, or has another version: call `await store.migrate()` when the process starts, ' +
    "or run the text of `PostgresStore.schemaSql()` with a migration tool. Check also that this is the store's database.",
  permission_denied:
    'The role lacks permissions in the schema "{schema}". Have its owner run `PostgresStore.schemaSql()`, and grant: ' +
    'GRANT USAGE ON SCHEMA "{schema}" TO the_role; ' +
    'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO the_role.',
  read_only: 'The session is read-only, or the server is a replica: the store needs the primary.',
  record_unreadable:
    'The record cannot be read, because a later version of the library wrote it. It was left unchanged.',
  record_locked: 'A transaction holds the record, and did not end in time.',
  contended: 'The command lost to other transactions repeatedly.',
  statement_unprepared:
    'A pooler gave the prepared statement to another session: leave out `prepares: true`, or use PgBouncer 1.21 or later with ' +
    '`max_prepared_statements` above 0.',
  timed_out:
    'The command took too long and was cancelled. Set statement_timeout to at least a second, and find out what keeps the ' +
    'database busy.',
  connections_exhausted:
    'There was no connection in time. Give the store its own small pool, from which no handler takes connections.',
  connection_lost: 'The connection to the database was refused or broke.',
  database_full: 'The database is out of space or memory.',
  client_unsuitable: 'The client returned an unknown format.',
  database_failed: 'The database failed.',
  transaction_unmarked:
    'This is not the transaction that was opened for this run, or a statement of the work has ended it: use the `tx` that `work` ' +
    'received, only while the transaction is open, and leave COMMIT and ROLLBACK to the store.',
  transaction_taken: 'This transaction belongs to another run: give each run its own transaction.',
  nothing_written:
    'Nothing was written in this transaction. Probably the writes went over another connection, and stay: use the `tx` that the work ' +
    'received, in every statement, and not the pool or the client; with `completeIn`, complete the record as the last statement of ' +
    'the transaction with the effects. Or there was nothing to write, such as an UPDATE that matched no row: then give ' +
    '`transaction` the option `allowEmpty: true`.',
  ...OWNERSHIP_ERRORS,
  record_absent:
    'There is no record of this run in the schema "{schema}" of this database: use the database that the store was given.',
  transaction_rolled_back:
    'A statement in the transaction had failed, so the database rolls it back: let the error end the work, or use a savepoint.',
}

/** Under which name clients put its code there (Prisma's adapters: `originalCode`). */
const CODES = ['originalCode', 'code', 'sqlState'] as const

/** The SQLSTATE of an error, wherever the client put it; `null` if the error is not the database's. */
export function findSqlState(error: unknown): string | null {
  for (const each of listCauses(error)) {
    for (const name of CODES) {
      const code = each[name]
      if (typeof code === 'string' && isSqlState(code)) return code
    }
  }
  return null
}

/** A statement of ours raises an error by reading a setting that does not exist, whose name says why, and the state of the record. */
function findRaisedReason(
  error: unknown,
): { readonly code: PostgresStoreErrorCode; readonly detail: string } | undefined {
  const [, code = '', state] = findMissingSetting(error)
  if (!(code in ADVICE)) return undefined
  return { code: code as PostgresStoreErrorCode, detail: state === undefined ? '' : ` Its record is ${state}.` }
}

/** The parts of its name. Some clients put the statement before the words of the database. */
function findMissingSetting(error: unknown): readonly (string | undefined)[] {
  if (findSqlState(error) !== UNDEFINED_SETTING) return []
  return [...findClientMessage(error).matchAll(/once_per_key\.(\w+)(?:\.(\w+))?/g)].at(-1) ?? []
}

/** Whether the record is not there, or not free, for a transaction that takes its key. */
export function isOperationTaken(error: unknown): boolean {
  return findMissingSetting(error)[1] === 'operation_taken' || TAKEN.has(findSqlState(error))
}

/** `unique_violation`: the record is there. `lock_not_available`: a command of a claimed run is writing it. */
const TAKEN: ReadonlySet<string | null> = new Set(['23505', '55P03'])

/** `undefined_object` */
const UNDEFINED_SETTING = '42704'

/** Whether a transaction holds the row. */
export function isLocked(error: unknown): boolean {
  return findSqlState(error) === '55P03'
}

/** An error that rolled the command back, and that a retry of the same command may not meet. */
export function isSerializationFailure(error: unknown): boolean {
  const sqlState = findSqlState(error)
  return sqlState === '40001' || sqlState === '40P01'
}

/** Whether the connection is still usable after this error: the database refused one statement. */
export function isStatementRefusal(error: unknown): boolean {
  const sqlState = findSqlState(error)
  if (sqlState === null || /^(08|57P|58|XX)/.test(sqlState)) return false
  return !listCauses(error).some(({ severity }) => severity === 'FATAL' || severity === 'PANIC')
}

export function isReadOnly(error: unknown): boolean {
  return toStoreErrorCode(error) === 'read_only'
}

export function isLostConnection(error: unknown): boolean {
  return listCauses(error).some(
    ({ code, message }) =>
      (typeof code === 'string' &&
        /^(connection_lost$|transaction_timed_out$|E(CONN|PIPE|TIMEDOUT|HOST|NET)|CONNECTION_)/.test(code)) ||
      /connection (terminated|ended|closed)|terminating connection|not queryable/i.test(String(message)),
  )
}

/** Thrown by `pg`'s pool if `connectionTimeoutMillis` is set. */
function isPoolTimeout(error: unknown): boolean {
  return listCauses(error).some(({ message }) => /timeout exceeded when trying to connect/i.test(String(message)))
}

/** Five digits and capitals, with at least one digit. Prisma's own codes (P1001 …) and Node's (EPIPE) look similar. */
function isSqlState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && !/^P[1-6]\d{3}$/.test(code)
}
