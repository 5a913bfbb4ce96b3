import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { Answer, Completion, Finish } from '../../../src/core/index.js'
import { encodeAsciiHead, type InFlight, type StoredRecord, toRecordColumns } from '../../sql/record-columns.js'
import { createStatement, encodeUtf8, type Statement, type StatementValue } from '../statement.js'
import { CLOCK, IS_OF_SERVER, NOW } from './clock.js'
import { encodeSteps } from './steps-column.js'
import { createTableNames, FORMAT, STATES } from './table.js'

export type Statements = ReturnType<typeof createRowStatements>

/** What a row was when it was read: it is changed only while it is still that. */
export interface Version {
  readonly token: string
  readonly revision: number
  readonly expiresAt: number
}

/** All but the bytes, which come as they are, is text: clients convert all other types differently. */
const TEXTS = ['state', 'token', 'fingerprint', 'head'].map((name) => `CONVERT(r.${name} USING utf8mb4) AS ${name}`)
const NUMBERS = ['format', 'revision', 'attempt', 'uncertain', 'lease_until', 'expires_at', 'status'].map(
  (name) => `CONCAT(r.${name}) AS ${name}`,
)
const COLUMNS = [...TEXTS, ...NUMBERS].join(', ')
const LOCKED = `c.is_set, c.stood_at, ${COLUMNS}`

const WRITTEN = [
  ...['state', 'token', 'fingerprint', 'attempt', 'uncertain', 'lease_until', 'expires_at'],
  ...['status', 'head', 'body', 'steps'],
]

/** The store's statements. Each is whole by itself: none needs another one's transaction. */
export function createRowStatements(prefix: string) {
  const tables = createTableNames(prefix)
  return {
    ...createReadStatements(tables),
    ...createWriteStatements(tables),
    ...createTransactionStatements(tables),
    ...createWalkStatements(tables),
  }
}

/** A number or a word, by version. A server refuses writes when it is read-only, but not from users with a privilege. */
const IS_PRIMARY = "CONCAT(@@GLOBAL.read_only) IN ('0', 'OFF')"
const SERVER = `CONCAT(${NOW}) AS now, CASE WHEN ${IS_PRIMARY} THEN '0' ELSE '1' END AS read_only`

/** Of a statement that writes by the server's time. */
const MAY_WRITE = `${IS_PRIMARY} AND ${IS_OF_SERVER}`

/** Evaluated before a lock is waited for. */
const BEFORE_LOCKS = `(SELECT ${CLOCK}) c`

function createReadStatements({ records }: Tables) {
  const server = 'c.now, c.read_only, c.is_set, c.stood_at'
  const from = `FROM (SELECT ${SERVER}, ${CLOCK}) c LEFT JOIN ${records} r ON r.id = ? LIMIT 1`
  const body = 'CASE WHEN r.fingerprint = ? THEN r.body END AS body'
  const readShown = createStatement(`SELECT ${server}, ${COLUMNS}, ${body}, r.steps ${from}`)
  return {
    /** The row of a key, with the time; a row without a record if there is none. */
    read: createKeyStatement(`SELECT ${server}, ${COLUMNS}, r.body, r.steps ${from}`),
    /** The same; the body only if the record has this fingerprint. */
    readShown: (key: string, fingerprint: string) => readShown(encodeUtf8(fingerprint), computeRecordId(key)),
    /** The row as last committed; fails if a transaction holds it. */
    lockAtOnce: createKeyStatement(
      `SELECT ${SERVER}, ${LOCKED}, r.body, r.steps FROM ${BEFORE_LOCKS} JOIN ${records} r ON r.id = ? LIMIT 1 FOR UPDATE NOWAIT`,
    ),
  }
}

function createWriteStatements({ records }: Tables) {
  const unchanged = 'id = ? AND token = ? AND revision = ? AND expires_at = ?'
  const claimed = 'id, name, format, revision, state, token, fingerprint, attempt, uncertain, lease_until, expires_at'
  const insert = createStatement(
    `INSERT INTO ${records} (id, name, format, revision, ${WRITTEN.join(', ')})
    VALUES (?, ?, ${FORMAT}, 1, ${WRITTEN.map(() => '?').join(', ')})`,
  )
  const claim = createStatement(
    `INSERT INTO ${records} (${claimed})
    SELECT ?, ?, ${FORMAT}, 1, ${STATES.inFlight}, ?, ?, 1, 0, ${NOW} + ?, ${NOW} + ? FROM DUAL WHERE ${MAY_WRITE}`,
  )
  const update = createStatement(
    `UPDATE ${records} SET format = ${FORMAT}, revision = revision + 1, ${WRITTEN.map((name) => `${name} = ?`).join(', ')}
    WHERE ${unchanged}`,
  )
  const remove = createStatement(`DELETE FROM ${records} WHERE ${unchanged}`)
  const renew = createStatement(
    `UPDATE ${records} SET revision = revision + 1, lease_until = ${NOW} + ?, expires_at = ${NOW} + ?
    WHERE ${OWNED} AND ${MAY_WRITE}`,
  )
  const complete = createStatement(`UPDATE ${records} SET ${COMPLETED} WHERE ${OWNED} AND ${MAY_WRITE}`)
  return {
    /** Writes a new row; fails if there is one. */
    insert: (key: string, record: StoredRecord) =>
      insert(computeRecordId(key), encodeUtf8(key), ...encodeRecordValues(record)),
    /** The same for a first claim, whose times are durations; writes no row on a server that is read-only, as the next two. */
    claim: (key: string, { token, fingerprint, leaseUntil, expiresAt }: InFlight) =>
      claim(computeRecordId(key), encodeUtf8(key), encodeUtf8(token), encodeUtf8(fingerprint), leaseUntil, expiresAt),
    update: (key: string, record: StoredRecord, version: Version) =>
      update(...encodeRecordValues(record), computeRecordId(key), ...encodeVersionValues(version)),
    remove: (key: string, version: Version) => remove(computeRecordId(key), ...encodeVersionValues(version)),
    renew: (key: string, token: string, leaseMs: number, retentionMs: number) =>
      renew(leaseMs, retentionMs, computeRecordId(key), encodeUtf8(token)),
    complete: (key: string, completion: Completion) => complete(...encodeCompletionValues(key, completion)),
  }
}

const OWNED = `id = ? AND token = ? AND state = ${STATES.inFlight} AND format = ${FORMAT} AND expires_at > ${NOW}`
const COMPLETED = `state = ${STATES.completed}, revision = revision + 1, uncertain = 0, lease_until = NULL, expires_at = ${NOW} + ?,
    status = ?, head = ?, body = ?, steps = NULL`

/** Those that are sent in a transaction of the application. */
function createTransactionStatements({ records }: Tables) {
  const lock = (columns: string) =>
    `SELECT ${SERVER}, ${LOCKED}${columns} FROM ${BEFORE_LOCKS} JOIN ${records} r ON r.id = ? LIMIT 1 FOR UPDATE`
  const keepSteps = createStatement(`UPDATE ${records} SET revision = revision + 1, steps = ? WHERE id = ?`)
  const completeLocked = createStatement(`UPDATE ${records} SET ${COMPLETED} WHERE ${OWNED}`)
  const placeholder = createStatement(
    `INSERT INTO ${records} (id, name, format, revision, state, token, fingerprint, attempt, uncertain, lease_until, expires_at)
    VALUES (?, ?, ${FORMAT}, 1, ${STATES.inFlight}, ?, '', 1, 1, 0, ?)`,
  )
  const finish = createStatement(
    `UPDATE ${records} SET format = ${FORMAT}, ${COMPLETED}, token = ?, fingerprint = ?, attempt = ? WHERE id = ? AND token = ?`,
  )
  return {
    /** The row as last committed, without bytes, locked until the transaction ends; no row if there is none. */
    lock: createKeyStatement(lock('')),
    /** The same; fails if a transaction holds it. */
    lockBareAtOnce: createKeyStatement(`${lock('')} NOWAIT`),
    /** The same as `lock`, with the steps in hexadecimal digits: every client returns text alike. */
    lockWithSteps: createKeyStatement(lock(', HEX(r.steps) AS steps')),
    keepSteps: (key: string, record: StoredRecord) => keepSteps(encodeSteps(record), computeRecordId(key)),
    /** The locked row becomes uncertain. */
    unsettle: createKeyStatement(`UPDATE ${records} SET revision = revision + 1, uncertain = 1 WHERE id = ?`),
    /** A row that is only a lock; where a statement of the work has committed it, nobody may run again. `now`: the store's sessions'. */
    placeholder: (key: string, token: string, now: number) =>
      placeholder(computeRecordId(key), encodeUtf8(key), encodeUtf8(token), now + DAY_MS),
    completeLocked: (key: string, completion: Completion) => completeLocked(...encodeCompletionValues(key, completion)),
    /** The locked row is completed by another owner. */
    finish: (key: string, { token, fingerprint, attempt, retentionMs, answer }: Finish, lockedToken: string) =>
      finish(
        ...([retentionMs, ...encodeAnswerValues(answer), encodeUtf8(token), encodeUtf8(fingerprint), attempt] as const),
        ...([computeRecordId(key), encodeUtf8(lockedToken)] as const),
      ),
  }
}

const DAY_MS = 86_400_000

function createWalkStatements({ records, sweeps }: Tables) {
  const walk = createStatement(
    `SELECT CONCAT(${NOW}) AS now, ${CLOCK}, HEX(r.id) AS id, HEX(r.name) AS name, ${COLUMNS}, r.body IS NULL AS bodiless
    FROM ${records} r WHERE r.id > ? ORDER BY r.id LIMIT ?`,
  )
  const expired = createStatement(
    `SELECT HEX(e.id) AS id, CONCAT(e.expires_at <= ${NOW}) AS is_expired, ${CLOCK}
    FROM (SELECT id, expires_at FROM ${records} WHERE id > ? ORDER BY id LIMIT ?) e LIMIT ?`,
  )
  const turned = createStatement(
    `UPDATE ${sweeps} SET next_id = ?, due_at = ${NOW} + ? WHERE id = 1 AND ${IS_OF_SERVER}`,
  )
  return {
    /** Some rows, in the order of their ids, after one of them. */
    walk: (fromId: string, rows: number) => walk(Buffer.from(fromId, 'hex'), rows),
    expired: (fromId: string, rows: number) => expired(Buffer.from(fromId, 'hex'), rows, rows),
    /** Removes those of these rows that have expired. By the index: reading a small table whole would lock each row of it. */
    removeExpired: (ids: readonly string[]): Statement =>
      createStatement(
        `DELETE r FROM ${records} r FORCE INDEX (PRIMARY)
        WHERE r.expires_at <= ${NOW} AND ${IS_OF_SERVER} AND r.id IN (${ids.map(() => '?').join(', ')})`,
      )(...ids.map((id) => Buffer.from(id, 'hex'))),
    /** Takes the turn to sweep for so many milliseconds, if nobody has it. */
    turn: createStatement(
      `UPDATE ${sweeps} SET due_at = ${NOW} + ? WHERE id = 1 AND due_at <= ${NOW} AND ${IS_OF_SERVER}`,
    ),
    progress: createStatement(`SELECT HEX(next_id) AS next_id FROM ${sweeps} WHERE id = 1 LIMIT 1`),
    /** Leaves the turn to the next. */
    turned: (nextId: string, pauseMs: number) => turned(Buffer.from(nextId, 'hex'), pauseMs),
  }
}

type Tables = ReturnType<typeof createTableNames>

/** A statement whose one value is a record's id. */
function createKeyStatement(sql: string): (key: string) => Statement {
  const ofId = createStatement(sql)
  return (key) => ofId(computeRecordId(key))
}

/** A storage key may exceed the maximum size of an index entry. */
function computeRecordId(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** In the order of WRITTEN. */
function encodeRecordValues(record: StoredRecord): StatementValue[] {
  const { state, token, fingerprint, attempt, uncertain, lease_until, expires_at } = toRecordColumns(record)
  const owner = [encodeUtf8(state), encodeUtf8(token), fingerprint === null ? null : encodeUtf8(fingerprint)]
  const answer = record.state === 'completed' ? encodeAnswerValues(record.answer) : [null, null, null]
  return [...owner, attempt, uncertain, lease_until, expires_at, ...answer, encodeSteps(record)]
}

function encodeAnswerValues({ body, ...head }: Answer): StatementValue[] {
  const inOne = body && Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return [head.status, encodeUtf8(encodeAsciiHead(head)), inOne]
}

function encodeCompletionValues(key: string, { token, retentionMs, answer }: Completion): StatementValue[] {
  return [retentionMs, ...encodeAnswerValues(answer), computeRecordId(key), encodeUtf8(token)]
}

function encodeVersionValues({ token, revision, expiresAt }: Version): StatementValue[] {
  return [encodeUtf8(token), revision, expiresAt]
}
