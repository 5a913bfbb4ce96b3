import { CLAIMED_COLUMNS, FORMAT, INTEGER_COLUMNS, RECORD_COLUMNS } from '../sql/record-columns.js'
import type { CommandKind } from '../sql/record-table.js'
import type { SqlValues } from '../sql/statement.js'
import { createStatement, toQuotedName } from './sql.js'

/** How long a command waits for a transaction that has locked its row; then it fails, and is retried later. */
const LOCK_WAIT = '1s'

/** A waiting claim occupies one of few connections, and a row that stays locked means that the key is in flight. */
const CLAIM_LOCK_WAIT = '250ms'

/** The time of the statement, in milliseconds since 1970: its transaction may have begun long before. */
export const NOW = "pg_catalog.floor(pg_catalog.date_part('epoch', pg_catalog.statement_timestamp()) {*} 1000)::bigint"

/** A confirmed command survives a crash of the server, even if `synchronous_commit` is off by default. */
export const SYNC_COMMIT_SQL = `pg_catalog.set_config('synchronous_commit',
    CASE WHEN pg_catalog.current_setting('synchronous_commit') {=} 'off' THEN 'on' ELSE pg_catalog.current_setting('synchronous_commit') END,
    true) IS NOT NULL`

/** What is lost in a crash may be done again. */
const ASYNC_COMMIT_SQL = "pg_catalog.set_config('synchronous_commit', 'off', true) IS NOT NULL"

const limitLockWaitSql = (value: string) => `pg_catalog.set_config('lock_timeout', ${value}, true) IS NOT NULL`

export const LIMIT_LOCK_WAIT_SQL = limitLockWaitSql(`'${LOCK_WAIT}'`)

const LIMIT_LOCK_WAIT_BY_KIND_SQL = limitLockWaitSql(':lockWait')

const LIMIT_CLAIM_LOCK_WAIT_SQL = limitLockWaitSql(`'${CLAIM_LOCK_WAIT}'`)

/** Raises an error whose text says why: such a setting does not exist. `reason`: SQL for a code of the store's errors. */
export function raiseSql(reason: string): string {
  return `pg_catalog.current_setting('once_per_key.' {||} ${reason})`
}

/** A replica may be behind, so even its refusals could be wrong. */
export const REFUSE_READ_ONLY = `WHEN pg_catalog.current_setting('transaction_read_only') {=} 'on' THEN ${raiseSql("'read_only'")}`

const SESSION_COLUMNS = `CASE ${REFUSE_READ_ONLY} END AS refused, (${NOW})::pg_catalog.text AS now,
  pg_catalog.current_setting('transaction_isolation') AS isolation`

/** Without the bytes. As text, because clients convert numbers differently. */
export const SHOWN_COLUMNS = [
  ...['r.state', 'r.token', 'r.fingerprint', 'r.head'],
  ...INTEGER_COLUMNS.map((name) => `r.${name}::pg_catalog.text AS ${name}`),
].join(', ')

/** Whether the record is the token's own, and in flight. */
export const IS_OWNED = `t.token {=} :token AND t.state {=} 'in-flight' AND t.format {=} ${FORMAT} AND t.expires_at {>} ${NOW}`

export const SET_COMPLETED = `state = 'completed', revision = t.revision {+} 1, uncertain = 0, lease_until = NULL,
    expires_at = ${NOW} {+} :retentionMs, status = :status, head = :head, body = :body, steps = NULL`

const IS_UNCHANGED = 't.id {=} :id AND t.token {=} :seen AND t.revision {=} :revision AND t.expires_at {=} :expiresAt'

/** The statements that read and write records. Each is a transaction of its own, and one that writes returns a row if it has written. */
export function createRecordStatements(schemaName: string) {
  const schema = toQuotedName(schemaName)
  const records = `${schema}.records`
  const written = RECORD_COLUMNS.map((name) => `${name} = :${name}`).join(', ')
  const joined = `FROM (SELECT 1) c LEFT JOIN ${records} r ON r.id {=} :id`
  const bodyOfOwn = 'CASE WHEN r.fingerprint {=} :fingerprint THEN r.body END AS body'
  return {
    /** Inserts a first claim, or reads the row that is in its place, which it does not wait for. */
    claim: createStatement(`WITH found AS (
      SELECT ${SHOWN_COLUMNS}, ${bodyOfOwn}, r.steps FROM ${records} r WHERE r.id {=} :id
    ), claimed AS (
      INSERT INTO ${records} (${CLAIMED_COLUMNS})
      SELECT :id, :name, ${FORMAT}, 1, 'in-flight', :token, :fingerprint, 1, 0, ${NOW} {+} :leaseMs, ${NOW} {+} :retentionMs
      WHERE NOT EXISTS (SELECT FROM found) AND ${LIMIT_CLAIM_LOCK_WAIT_SQL} AND ${SYNC_COMMIT_SQL}
      ON CONFLICT (id) DO NOTHING RETURNING 1
    )
    SELECT CASE WHEN EXISTS (SELECT FROM claimed) THEN '1' END AS inserted, ${SESSION_COLUMNS}, found.*
      FROM (SELECT 1) c LEFT JOIN found ON true`),
    read: createStatement(`SELECT ${SESSION_COLUMNS}, ${SHOWN_COLUMNS}, r.body, r.steps ${joined}`),
    /** The body only if the record has this fingerprint. */
    readShown: createStatement(`SELECT ${SESSION_COLUMNS}, ${SHOWN_COLUMNS}, ${bodyOfOwn}, r.steps ${joined}`),
    /** The row as last committed. Fails if a transaction holds it: it waits for commands, which hold a row for an instant. */
    readUnlessRowLocked: createStatement(`SELECT ${SESSION_COLUMNS}, ${SHOWN_COLUMNS}, r.body, r.steps FROM ${records} r
      WHERE r.id {=} :id AND ${LIMIT_CLAIM_LOCK_WAIT_SQL} AND ${ASYNC_COMMIT_SQL} FOR NO KEY UPDATE`),
    /** Whether no transaction has taken the key. */
    tryLock: createStatement(
      `SELECT CASE WHEN pg_catalog.pg_try_advisory_xact_lock_shared(:lock) THEN '1' END AS free, ${SESSION_COLUMNS}`,
    ),
    insert:
      createLockTimeoutStatement(`INSERT INTO ${records} (id, name, format, revision, ${RECORD_COLUMNS.join(', ')})
      SELECT :id, :name, ${FORMAT}, 1, ${RECORD_COLUMNS.map((name) => `:${name}`).join(', ')} WHERE ${LIMIT_LOCK_WAIT_BY_KIND_SQL} AND ${SYNC_COMMIT_SQL}
      ON CONFLICT (id) DO NOTHING RETURNING '1' AS done`),
    update:
      createLockTimeoutStatement(`UPDATE ${records} t SET format = ${FORMAT}, revision = t.revision {+} 1, ${written}
      WHERE ${IS_UNCHANGED} AND ${LIMIT_LOCK_WAIT_BY_KIND_SQL} AND ${SYNC_COMMIT_SQL} RETURNING '1' AS done`),
    remove: createLockTimeoutStatement(
      `DELETE FROM ${records} t WHERE ${IS_UNCHANGED} AND ${LIMIT_LOCK_WAIT_BY_KIND_SQL} AND ${SYNC_COMMIT_SQL} RETURNING '1' AS done`,
    ),
    renew: createStatement(`UPDATE ${records} t
      SET revision = t.revision {+} 1, lease_until = ${NOW} {+} :leaseMs, expires_at = ${NOW} {+} :retentionMs
      WHERE t.id {=} :id AND ${IS_OWNED} AND ${LIMIT_LOCK_WAIT_SQL} AND ${SYNC_COMMIT_SQL} RETURNING '1' AS done`),
    complete: createStatement(
      `UPDATE ${records} t SET ${SET_COMPLETED} WHERE t.id {=} :id AND ${IS_OWNED} AND ${LIMIT_LOCK_WAIT_SQL} AND ${SYNC_COMMIT_SQL} RETURNING '1' AS done`,
    ),
    ...createWalkStatements(schema),
  }
}

/** A statement that several kinds of commands send. A claim waits less long for a locked row. */
function createLockTimeoutStatement(sql: string) {
  const create = createStatement(sql)
  return (values: SqlValues, kind?: CommandKind) =>
    create({ ...values, lockWait: kind === 'claim' ? CLAIM_LOCK_WAIT : LOCK_WAIT })
}

/**
 * Statements that walk through the table, a stretch of pages at a time, since an index by expiry or state would be written by each command.
 * A stretch is read by physical row location (Postgres 14 and later), so it costs the same in a large table.
 */
function createWalkStatements(schema: string) {
  const blocks = `(pg_catalog.pg_relation_size('${schema}.records'::pg_catalog.regclass)
    {/} pg_catalog.current_setting('block_size')::bigint)::pg_catalog.text AS blocks`
  const inStretch = 'r.ctid {>=} :first::pg_catalog.tid AND r.ctid {<} :beyond::pg_catalog.tid'
  const bodyIsKept =
    "CASE WHEN r.body IS NOT NULL THEN ''::pg_catalog.bytea END AS body, NULL::pg_catalog.bytea AS steps"
  const list = (asked: string) =>
    createStatement(`SELECT ${SESSION_COLUMNS}, ${blocks}, r.name, ${SHOWN_COLUMNS}, ${bodyIsKept}
      FROM (SELECT 1) c LEFT JOIN ${schema}.records r ON ${inStretch} AND ${asked}`)
  return {
    /** Records whose outcome may be unknown. A row without a name: there are none. */
    list: list("r.state {<>} 'completed'"),
    listPrefix: list('pg_catalog.starts_with(r.name, :prefix)'),
    sweep: createStatement(`WITH gone AS (
      DELETE FROM ${schema}.records t WHERE t.ctid {=} ANY (ARRAY(
        SELECT r.ctid FROM ${schema}.records r WHERE ${inStretch} AND r.expires_at {<=} ${NOW} AND ${ASYNC_COMMIT_SQL}
        FOR UPDATE SKIP LOCKED
      )) RETURNING 1
    )
    SELECT (SELECT pg_catalog.count(*) FROM gone)::pg_catalog.text AS removed, ${blocks}`),
    takeTurn: createStatement(`INSERT INTO ${schema}.sweeps AS t (id, next_block, due_at)
      SELECT 1, 0, ${NOW} {+} :turnMs WHERE ${LIMIT_CLAIM_LOCK_WAIT_SQL} AND ${ASYNC_COMMIT_SQL}
      ON CONFLICT (id) DO UPDATE SET due_at = excluded.due_at WHERE t.due_at {<=} ${NOW}
      RETURNING t.next_block::pg_catalog.text AS block`),
    releaseTurn: createStatement(`UPDATE ${schema}.sweeps t SET next_block = :block, due_at = ${NOW} {+} :pauseMs
      WHERE t.id {=} 1 AND ${LIMIT_CLAIM_LOCK_WAIT_SQL} AND ${ASYNC_COMMIT_SQL} RETURNING '1' AS done`),
  }
}
