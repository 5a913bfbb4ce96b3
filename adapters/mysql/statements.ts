import { CLAIMED_COLUMNS, FORMAT, INTEGER_COLUMNS, RECORD_COLUMNS } from '../sql/record-columns.js'
import { createTableNames, toBinarySql } from './schema.js'
import { CLOCK_COLUMNS, IS_SESSION_CLOCK_REAL, NOW } from './session.js'
import { createStatement, type Statement } from './sql.js'

const IN_FLIGHT = toBinarySql('in-flight')
const COMPLETED = toBinarySql('completed')

/** All but the bytes, which come as they are, is text: clients convert all other types differently. */
const TEXTS = ['state', 'token', 'fingerprint', 'head'].map((name) => `CONVERT(r.${name} USING utf8mb4) AS ${name}`)
const COLUMNS = [...TEXTS, ...INTEGER_COLUMNS.map((name) => `CONCAT(r.${name}) AS ${name}`)].join(', ')
const LOCKED = `c.is_set, c.stood_at, ${COLUMNS}`

/** A number or a word, by version. A server refuses writes when it is read-only, but not from users with a privilege. */
const IS_PRIMARY = "CONCAT(@@GLOBAL.read_only) IN ('0', 'OFF')"
const SERVER = `CONCAT(${NOW}) AS now, CASE WHEN ${IS_PRIMARY} THEN '0' ELSE '1' END AS read_only`

/** Of a statement that writes by the server's time. */
const MAY_WRITE = `${IS_PRIMARY} AND ${IS_SESSION_CLOCK_REAL}`

/** Evaluated before a lock is waited for. */
const BEFORE_LOCKS = `(SELECT ${CLOCK_COLUMNS}) c`

const IS_UNCHANGED = 'id = :id AND token = :seen AND revision = :revision AND expires_at = :expiresAt'
const IS_OWNED = `id = :id AND token = :token AND state = ${IN_FLIGHT} AND format = ${FORMAT} AND expires_at > ${NOW}`
const SET_COMPLETED = `state = ${COMPLETED}, revision = revision + 1, uncertain = 0, lease_until = NULL,
    expires_at = ${NOW} + :retentionMs, status = :status, head = :head, body = :body, steps = NULL`

/** The store's own statements. Each is a transaction of its own. */
export function createRecordStatements(prefix: string) {
  const { records, sweeps } = createTableNames(prefix)
  const server = 'c.now, c.read_only, c.is_set, c.stood_at'
  const from = `FROM (SELECT ${SERVER}, ${CLOCK_COLUMNS}) c LEFT JOIN ${records} r ON r.id = :id LIMIT 1`
  const written = RECORD_COLUMNS.map((name) => `${name} = :${name}`).join(', ')
  const listed = `SELECT CONCAT(${NOW}) AS now, ${CLOCK_COLUMNS}, HEX(r.id) AS id, HEX(r.name) AS name, ${COLUMNS}, r.body IS NULL AS bodiless`
  return {
    /** The row of a key, with the time; a row without a record if there is none. */
    read: createStatement(`SELECT ${server}, ${COLUMNS}, r.body, r.steps ${from}`),
    /** The same; the body only if the record has this fingerprint. */
    readShown: createStatement(
      `SELECT ${server}, ${COLUMNS}, CASE WHEN r.fingerprint = :fingerprint THEN r.body END AS body, r.steps ${from}`,
    ),
    /** The row as last committed; fails if a transaction has locked it. */
    readUnlessRowLocked: createStatement(
      `SELECT ${SERVER}, ${LOCKED}, r.body, r.steps FROM ${BEFORE_LOCKS} JOIN ${records} r ON r.id = :id LIMIT 1 FOR UPDATE NOWAIT`,
    ),
    /** Inserts a first claim; fails if there is a row, and writes none on a server that is read-only, as `renew` and `complete`. */
    claim: createStatement(`INSERT INTO ${records} (${CLAIMED_COLUMNS})
      SELECT :id, :name, ${FORMAT}, 1, ${IN_FLIGHT}, :token, :fingerprint, 1, 0, ${NOW} + :leaseMs, ${NOW} + :retentionMs
      FROM DUAL WHERE ${MAY_WRITE}`),
    /** Fails if there is a row. */
    insert: createStatement(`INSERT INTO ${records} (id, name, format, revision, ${RECORD_COLUMNS.join(', ')})
      VALUES (:id, :name, ${FORMAT}, 1, ${RECORD_COLUMNS.map((name) => `:${name}`).join(', ')})`),
    update: createStatement(
      `UPDATE ${records} SET format = ${FORMAT}, revision = revision + 1, ${written} WHERE ${IS_UNCHANGED}`,
    ),
    remove: createStatement(`DELETE FROM ${records} WHERE ${IS_UNCHANGED}`),
    renew: createStatement(`UPDATE ${records}
      SET revision = revision + 1, lease_until = ${NOW} + :leaseMs, expires_at = ${NOW} + :retentionMs WHERE ${IS_OWNED} AND ${MAY_WRITE}`),
    complete: createStatement(`UPDATE ${records} SET ${SET_COMPLETED} WHERE ${IS_OWNED} AND ${MAY_WRITE}`),

    /** Some rows, in the order of their ids, which are random: no index is needed for it. */
    list: createStatement(`${listed} FROM ${records} r WHERE r.id > :from ORDER BY r.id LIMIT :rows`),
    expired: createStatement(`SELECT HEX(e.id) AS id, CONCAT(e.expires_at <= ${NOW}) AS is_expired, ${CLOCK_COLUMNS}
      FROM (SELECT id, expires_at FROM ${records} WHERE id > :from ORDER BY id LIMIT :rows) e LIMIT :rows`),
    /** Removes those of these rows that have expired. By the index: reading a small table whole would lock each row of it. */
    removeExpired: (ids: readonly Buffer[]): Statement =>
      createStatement(`DELETE r FROM ${records} r FORCE INDEX (PRIMARY)
        WHERE r.expires_at <= ${NOW} AND ${IS_SESSION_CLOCK_REAL} AND r.id IN (${ids.map((_, i) => `:id${i}`).join(', ')})`)(
        Object.fromEntries(ids.map((id, i) => [`id${i}`, id])),
      ),
    /** Takes the turn to sweep for so many milliseconds, if nobody has it. */
    takeTurn: createStatement(
      `UPDATE ${sweeps} SET due_at = ${NOW} + :turnMs WHERE id = 1 AND due_at <= ${NOW} AND ${IS_SESSION_CLOCK_REAL}`,
    ),
    progress: createStatement(`SELECT HEX(next_id) AS next_id FROM ${sweeps} WHERE id = 1 LIMIT 1`),
    releaseTurn: createStatement(
      `UPDATE ${sweeps} SET next_id = :from, due_at = ${NOW} + :pauseMs WHERE id = 1 AND ${IS_SESSION_CLOCK_REAL}`,
    ),
  }
}

/** Those that are sent in a transaction of the application. */
export function createTransactionStatements(prefix: string) {
  const { records } = createTableNames(prefix)
  const lock = (columns: string) =>
    `SELECT ${SERVER}, ${LOCKED}${columns} FROM ${BEFORE_LOCKS} JOIN ${records} r ON r.id = :id LIMIT 1 FOR UPDATE`
  return {
    /** The row as last committed, without bytes, locked until the transaction ends; no row if there is none. */
    lock: createStatement(lock('')),
    /** The same; fails if a transaction holds it. */
    lockAtOnce: createStatement(`${lock('')} NOWAIT`),
    /** The same as `lock`, with the steps in hexadecimal digits: every client returns text alike. */
    lockWithSteps: createStatement(lock(', HEX(r.steps) AS steps')),
    writeSteps: createStatement(`UPDATE ${records} SET revision = revision + 1, steps = :steps WHERE id = :id`),
    /** The locked row becomes uncertain. */
    makeUncertain: createStatement(`UPDATE ${records} SET revision = revision + 1, uncertain = 1 WHERE id = :id`),
    /** A row that is only a lock; where a statement of the work has committed it, nobody may run again. */
    insertLockRow: createStatement(`INSERT INTO ${records} (${CLAIMED_COLUMNS})
      VALUES (:id, :name, ${FORMAT}, 1, ${IN_FLIGHT}, :token, '', 1, 1, 0, :expiresAt)`),
    completeLocked: createStatement(`UPDATE ${records} SET ${SET_COMPLETED} WHERE ${IS_OWNED}`),
    /** The locked row is completed by another owner. */
    finish: createStatement(`UPDATE ${records}
      SET format = ${FORMAT}, ${SET_COMPLETED}, token = :token, fingerprint = :fingerprint, attempt = :attempt WHERE id = :id AND token = :taken`),
  }
}
