import { MySqlStoreError } from './errors.js'
import { createStatement } from './sql.js'

/**
 * The time of the statement, in milliseconds since 1970. In UTC, so that neither the time zone of the session nor its change to winter
 * time matters. `SET timestamp` moves it, so it counts only where `IS_SESSION_CLOCK_REAL`.
 */
export const NOW = `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)`

/** How far apart they are: `SYSDATE` is the time at which it is evaluated, which `SET timestamp` does not move. */
const APART = 'ABS(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)))'

/** Longer than a statement takes that waits for no lock, and shorter than a lease. */
const MOST_APART_US = 2_000_000

/** Whether the time of the statement is the server's, or the application has set it for its session, as for a back-dated booking. */
export const IS_SESSION_CLOCK_REAL = `${APART} < ${MOST_APART_US}`

/**
 * What a statement says of its session's clock: whether it was set; and, where that cannot be seen in one statement, at which
 * microsecond it stood. It cannot be seen on a server with `--sysdate-is-now`, where both functions are moved. The next statement of a
 * session whose clock was set has the same microsecond, and of no other.
 */
export const CLOCK_COLUMNS =
  `CASE WHEN ${IS_SESSION_CLOCK_REAL} THEN '0' ELSE '1' END AS is_set, ` +
  'CASE WHEN SYSDATE(6) = NOW(6) THEN CONCAT(UTC_TIMESTAMP(6)) END AS stood_at'

export const selectClock = createStatement('SELECT CONCAT(UTC_TIMESTAMP(6)) AS stood_at LIMIT 1')

/** For the store's own sessions, where no statement could see that the clock was set. */
export const RESET_SESSION_CLOCK_SQL = 'SET timestamp = DEFAULT'

export function clockIsSetError(): MySqlStoreError {
  return new MySqlStoreError(
    'database_unsuitable',
    "The session's clock was set (`SET timestamp`), by which the record would expire at a wrong time. Send `SET timestamp = DEFAULT` " +
      'before the work ends, and before you give a connection back to its pool. Give the store a pool of its own.',
  )
}

// --- what a session has written

const COUNTERS = [
  ...['Com_insert', 'Com_insert_select', 'Com_update', 'Com_update_multi', 'Com_delete', 'Com_delete_multi'],
  ...['Com_replace', 'Com_replace_select', 'Com_load', 'Com_call_procedure'],
]

/** A statement that sends no rows may have written: an UPDATE that matches none counts too. Every user may ask. */
export const showWriteCounters = createStatement(
  `SHOW SESSION STATUS WHERE Variable_name IN (${COUNTERS.map((name) => `'${name}'`).join(', ')})`,
)

/**
 * How many statements that write the session has been sent.
 *
 * @throws MySqlStoreError `database_unsuitable`: the session leaves rows out, and no SHOW has a LIMIT of its own.
 */
export function countWrites(rows: readonly Readonly<Record<string, unknown>>[]): number {
  if (rows.length >= COUNTERS.length) return rows.reduce((sum, row) => sum + Number(readVariable(row)), 0)
  throw new MySqlStoreError(
    'database_unsuitable',
    'The session of the transaction leaves rows out: leave `sql_select_limit` at its default, at least when the work ends.',
  )
}

export function readVariable(row: Readonly<Record<string, unknown>>): string {
  return String(row.Value ?? row.VARIABLE_VALUE)
}
