import { FORMAT } from '../sql/record-columns.js'
import {
  IS_OWNED,
  LIMIT_LOCK_WAIT_SQL,
  NOW,
  REFUSE_READ_ONLY,
  raiseSql,
  SET_COMPLETED,
  SHOWN_COLUMNS,
  SYNC_COMMIT_SQL,
} from './record-statements.js'
import { createStatement, toQuotedName } from './sql.js'

/**
 * Statements inside the application's transaction. Each raises an error if the transaction must not commit, which aborts it: COMMIT may
 * follow in the same trip, and nobody has to check a reply.
 *
 * The mark proves that this is the transaction that was opened for the run with this token: same connection, same database, and not rolled
 * back since. That something was written before the completion proves that the effects are not elsewhere, as far as that can be known. No
 * statement of ours counts, since the mark writes nothing. When the application opened the transaction itself, for `completeIn`, that check
 * is all there is.
 *
 * No statement that can succeed lets the planner choose how it reads the table. It would read a small one as a whole, which makes unrelated
 * transactions abort at SERIALIZABLE. INSERT … ON CONFLICT goes by the unique index.
 */
export function createTransactionStatements(schemaName: string) {
  const schema = toQuotedName(schemaName)
  return {
    /**
     * The first statement: marks the transaction with the token, and makes the database end a session that is inactive in it for too long.
     * Raises where the schema is missing.
     */
    mark: createStatement(`SELECT ${MARKING}, '${schema}.records'::pg_catalog.regclass IS NOT NULL AS place`),
    /** Locks the record until the transaction ends, and makes it uncertain. */
    step: createOwnChange(schema, 'uncertain = 1, revision = t.revision {+} 1', MARKED, STEPS),
    /** Of the record that `step` has locked. */
    stepDone: createOwnChange(schema, 'steps = :steps, revision = t.revision {+} 1', MARKED),
    complete: createOwnChange(schema, SET_COMPLETED, [...MARKED, ...WRITTEN]),
    completeEmpty: createOwnChange(schema, SET_COMPLETED, MARKED),
    completeByHand: createOwnChange(schema, SET_COMPLETED, WRITTEN),
    ...createUnclaimedStatements(schema),
  }
}

/** The transaction's mark: a setting that ends with the transaction. */
const MARK = "pg_catalog.current_setting('once_per_key.token', true)"
const IS_MARKED = `coalesce(${MARK}, '') {=} :token`
const IS_WRITTEN = 'pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL'

const IDLE_MS =
  "pg_catalog.date_part('epoch', pg_catalog.current_setting('idle_in_transaction_session_timeout')::interval) {*} 1000"

const MARKING = `pg_catalog.current_setting('transaction_isolation') AS isolation,
  CASE ${REFUSE_READ_ONLY}
    WHEN coalesce(${MARK}, '') {<>} '' AND ${MARK} {<>} :token THEN ${raiseSql("'transaction_taken'")}
    ELSE pg_catalog.set_config('once_per_key.token', :token, true) END AS mark,
  CASE WHEN ${IDLE_MS} {=} 0 OR ${IDLE_MS} {>} :idleMs
    THEN pg_catalog.set_config('idle_in_transaction_session_timeout', (:idleMs)::pg_catalog.text, true) END AS idle`

/** What must be true, and the reason that is raised if it is not. */
type Check = readonly [condition: string, reason: string]
const MARKED: readonly Check[] = [[IS_MARKED, 'transaction_unmarked']]
/** Where the checks fail nothing is inserted, so that this still holds behind them. */
const WRITTEN: readonly Check[] = [[IS_WRITTEN, 'nothing_written']]

function toConditionsSql(checks: readonly Check[]): string {
  return checks.map(([condition]) => condition).join(' AND ')
}

function toRefusalsSql(checks: readonly Check[]): string {
  return checks.map(([condition, reason]) => `WHEN NOT (${condition}) THEN '${reason}'`).join(' ')
}

/** Only the locks of our statement are limited: neither those of the work, nor those of triggers at COMMIT. */
const BEFORE = "WITH before AS (SELECT pg_catalog.current_setting('lock_timeout') AS lock_timeout)"
const RESTORED =
  "pg_catalog.set_config('lock_timeout', before.lock_timeout, true) AS waits FROM before LEFT JOIN done ON true"

const STEPS = "pg_catalog.encode(done.steps, 'hex') AS steps,"

/**
 * Changes the token's own record in flight, or raises why it cannot, which is read only then. A row of revision 0 is inserted where there
 * is none, which is then refused.
 */
function createOwnChange(schema: string, set: string, checks: readonly Check[], shown = '') {
  return createStatement(`${BEFORE}, done AS (
      INSERT INTO ${schema}.records AS t (id, name, format, revision, state, token, fingerprint, attempt, uncertain, expires_at, status, head)
      SELECT :id, '', ${FORMAT}, 0, 'completed', '', '', 0, 0, 0, 0, '' FROM before WHERE ${toConditionsSql(checks)} AND ${LIMIT_LOCK_WAIT_SQL} AND ${SYNC_COMMIT_SQL}
      ON CONFLICT (id) DO UPDATE SET ${set} WHERE ${IS_OWNED}
      RETURNING t.revision, t.steps
    )
    SELECT CASE WHEN done.revision {>} 0 THEN 'ok' ELSE ${raiseSql(`CASE ${toRefusalsSql(checks)}
      WHEN done.revision {=} 0 THEN 'record_absent'
      ELSE coalesce((
        SELECT CASE WHEN r.expires_at {<=} ${NOW} THEN 'record_absent' WHEN r.format {<>} ${FORMAT} THEN 'record_unreadable'
          WHEN r.token {=} :token AND r.state {<>} 'in-flight' THEN 'record_ended.' {||} r.state END
        FROM ${schema}.records r WHERE r.id {=} :id
      ), 'record_taken') END`)} END AS reply, ${shown} ${RESTORED}`)
}

/**
 * Of a transaction that takes its key. The unique index is the authority. The advisory lock only saves work, but with the lock free,
 * whatever its last holder has committed can be read by the next statement.
 */
function createUnclaimedStatements(schema: string) {
  const finish = (checks: readonly Check[], onConflict: string) =>
    createStatement(`${BEFORE}, done AS (
      INSERT INTO ${schema}.records AS t (id, name, format, revision, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
      SELECT :id, :name, ${FORMAT}, 1, 'completed', :token, :fingerprint, :attempt, 0, ${NOW} {+} :retentionMs, :status, :head, :body
      FROM before WHERE ${toConditionsSql(checks)} AND ${LIMIT_LOCK_WAIT_SQL} AND ${SYNC_COMMIT_SQL} ${onConflict} RETURNING t.revision
    )
    SELECT CASE WHEN done.revision IS NOT NULL THEN 'ok'
      ELSE ${raiseSql(`CASE ${toRefusalsSql(checks)} ELSE 'operation_taken' END`)} END AS reply, ${RESTORED}`)
  const written = [...MARKED, ...WRITTEN]
  return {
    /** Marks the transaction, and tries to take the lock. The record is read not above READ COMMITTED, where that would abort others. */
    enter: createStatement(
      `SELECT ${MARKING}, CASE WHEN pg_catalog.pg_try_advisory_xact_lock(:lock) THEN '1' END AS free`,
    ),
    /** Behind `enter`, whose lock is older than this snapshot. */
    readEntered:
      createStatement(`SELECT (${NOW})::pg_catalog.text AS now, CASE WHEN pg_catalog.current_setting('transaction_isolation') {=} 'read committed' THEN (
        SELECT pg_catalog.row_to_json(found)::pg_catalog.text FROM (SELECT ${SHOWN_COLUMNS} FROM ${schema}.records r WHERE r.id {=} :id) found
      ) END AS found`),
    /** The last one, without ON CONFLICT: it raises where there is a record. */
    finish: finish(written, ''),
    finishEmpty: finish(MARKED, ''),
    /** Over the record that the look has found, as long as that lets others take the key. */
    finishOver: finish(written, OVER_SEEN),
    finishOverEmpty: finish(MARKED, OVER_SEEN),
  }
}

/** Of the row that is inserted in its place. */
const FINISHED = ['state', 'token', 'fingerprint', 'attempt', 'uncertain', 'expires_at', 'status', 'head', 'body']

const OVER_SEEN = `ON CONFLICT (id) DO UPDATE SET format = ${FORMAT}, revision = t.revision {+} 1, lease_until = NULL, steps = NULL,
      ${FINISHED.map((name) => `${name} = excluded.${name}`).join(', ')}
      WHERE t.token {=} :seen AND (t.expires_at {<=} ${NOW} OR t.state {=} 'failed' OR (t.state {=} 'in-flight' AND t.lease_until {<=} ${NOW}))`
