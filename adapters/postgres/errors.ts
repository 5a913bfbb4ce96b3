import { isLostConnection, isPoolTimeout, sqlStateOf, wordsOf } from './sql-state.js'

/**
 * What went wrong between the store and its database. Closed: a new one is a minor release. Unless said otherwise, nothing
 * was changed.
 *
 * - `schema_missing`: the schema, or a function or table in it, is not there. Call `migrate()`, or run `schemaSql()`.
 * - `permission_denied`: the role may not use, or not create, what the store needs.
 * - `read_only`: the session is read-only, or the server a replica.
 * - `record_unreadable`: a record is damaged, or of a format of a later version. It was left as it is.
 * - `record_locked`: a transaction holds the record, and was not over in time.
 * - `contended`: other commands were faster, again and again (serialization failures, deadlocks).
 * - `timed_out`: the database, or the client, ended the command for its duration.
 * - `connections_exhausted`: there was no connection in time, or the database accepts no more.
 * - `connection_lost`: the connection was refused, or broke; what was sent over it may have been done.
 * - `database_full`: the database is out of space or memory.
 * - `client_unsuitable`: the client answered in a form that the store does not know; what was sent may have been done.
 * - `database_failed`: any other error of the database, or of the client; `cause` has it.
 *
 * Inside a transaction of the application's, all of which they undo:
 * - `transaction_unmarked`: it is not the transaction that was opened for the run, or was rolled back in between.
 * - `transaction_taken`: it is marked for another run.
 * - `nothing_written`: completed by hand, where nothing had been written: it is not the transaction of the effects.
 * - `record_absent`: there is no record: its retention is over, or the database is another one.
 * - `record_taken`: another attempt owns the record.
 * - `record_ended`: the run has ended already.
 * - `transaction_rolled_back`: a statement in it had failed, so its COMMIT rolled it back.
 */
export type PostgresStoreErrorCode =
  | 'schema_missing'
  | 'permission_denied'
  | 'read_only'
  | 'record_unreadable'
  | 'record_locked'
  | 'contended'
  | 'timed_out'
  | 'connections_exhausted'
  | 'connection_lost'
  | 'database_full'
  | 'client_unsuitable'
  | 'database_failed'
  | 'transaction_unmarked'
  | 'transaction_taken'
  | 'nothing_written'
  | 'record_absent'
  | 'record_taken'
  | 'record_ended'
  | 'transaction_rolled_back'

/** Decide by `code`; `cause` is the client's own error. Its message holds no key and no body. */
export class PostgresStoreError extends Error {
  override readonly name = 'PostgresStoreError'
  readonly code: PostgresStoreErrorCode

  constructor(code: PostgresStoreErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** What an error of a client means, and what to do about it. */
export function storeError(error: unknown, schema: string): PostgresStoreError {
  if (error instanceof PostgresStoreError) return error
  const code = codeOf(error)
  return new PostgresStoreError(code, `${ADVICE[code](schema)} The client said: ${wordsOf(error)}`, { cause: error })
}

function codeOf(error: unknown): PostgresStoreErrorCode {
  const sqlState = sqlStateOf(error)
  if (sqlState === null) {
    if (isPoolTimeout(error)) return 'connections_exhausted'
    return isLostConnection(error) ? 'connection_lost' : 'database_failed'
  }
  return BY_SQL_STATE[sqlState] ?? BY_CLASS[sqlState.slice(0, 2)] ?? 'database_failed'
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html; those with `OP` are the schema's own. */
const BY_SQL_STATE: Readonly<Record<string, PostgresStoreErrorCode>> = {
  '3F000': 'schema_missing',
  '42883': 'schema_missing',
  '42P01': 'schema_missing',
  '42501': 'permission_denied',
  '25006': 'read_only',
  '55P03': 'record_locked',
  '40001': 'contended',
  '40P01': 'contended',
  '57014': 'timed_out',
  '53300': 'connections_exhausted',
  '08P01': 'database_failed',
  '57P01': 'connection_lost',
  '57P02': 'connection_lost',
  '57P03': 'connection_lost',
  OP001: 'record_unreadable',
  OP002: 'transaction_unmarked',
  OP003: 'record_absent',
  OP004: 'record_taken',
  OP005: 'record_ended',
  OP006: 'transaction_taken',
  OP007: 'nothing_written',
}

const BY_CLASS: Readonly<Record<string, PostgresStoreErrorCode>> = {
  '08': 'connection_lost',
  '53': 'database_full',
}

const ADVICE: Readonly<Record<PostgresStoreErrorCode, (schema: string) => string>> = {
  schema_missing: (schema) =>
    `The schema "${schema}" is not there, or of another version: call \`await store.migrate()\` when the process starts, ` +
    "or run the text of `PostgresStore.schemaSql()` with a migration tool. Look also whether it is the store's database.",
  permission_denied: (schema) =>
    `The role may not do that in the schema "${schema}". Have its owner run \`PostgresStore.schemaSql()\`, and grant: ` +
    `GRANT USAGE ON SCHEMA "${schema}" TO the_role; ` +
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schema}" TO the_role.`,
  read_only: () => 'The session is read-only, or the server is a replica: the store needs the primary.',
  record_unreadable: () =>
    'The record cannot be read, and was left as it is: it was written by a later version of the library.',
  record_locked: () => 'A transaction holds the record, and was not over in time.',
  contended: () => 'Other transactions were faster, again and again.',
  timed_out: () =>
    'The command took too long, and was ended. See to it that statement_timeout leaves it a second, and what the database ' +
    'is busy with.',
  connections_exhausted: () =>
    'There was no connection in time. Give the store a small pool of its own, which no handler takes connections from.',
  connection_lost: () => 'The connection to the database was refused, or broke.',
  database_full: () => 'The database is out of space or memory.',
  client_unsuitable: () => 'The client answered in a form that the store does not know.',
  database_failed: () => 'The database failed.',
  transaction_unmarked: () =>
    'This is not the transaction that was opened for this run: use the `tx` that was handed in, and only while the ' +
    'transaction is open.',
  transaction_taken: () => 'This transaction belongs to another run: give each run a transaction of its own.',
  nothing_written: () =>
    'Nothing was written before in this transaction: complete in the transaction of the effects, as its last statement.',
  record_absent: (schema) =>
    `There is no record of this run in the schema "${schema}" of this database: use the database that the store was given.`,
  record_taken: () => 'This run lost its lease, and another attempt owns the record.',
  record_ended: () => 'This run has ended already.',
  transaction_rolled_back: () => 'A statement in the transaction had failed, so its COMMIT rolled it back.',
}
