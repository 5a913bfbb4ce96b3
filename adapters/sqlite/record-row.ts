import { createHash } from 'node:crypto'
import type { Answer, machine, StoredStep } from '../../src/core/index.js'
import type { Row, SqliteValue } from './client.js'
import { SqliteStoreError } from './errors.js'
import { CHECKED_FORMAT, FORMAT } from './table.js'

type StoredRecord = machine.StoredRecord

/**
 * The record in a row; `null` if there is no row or it has expired.
 *
 * @throws SqliteStoreError `record_unreadable`.
 */
export function recordIn(row: Row | undefined, now: number): StoredRecord | null {
  if (row === undefined) return null
  if (row.format === CHECKED_FORMAT && row.checksum !== undefined) check(row)
  if (now >= integer(row, 'expires_at')) return null
  if (!isKnownFormat(row)) {
    throw unreadable('a later version of the library wrote it, in a format that this version does not know')
  }
  const last = { token: text(row, 'token'), expiresAt: integer(row, 'expires_at') }
  const attempt = integer(row, 'attempt')
  switch (row.state) {
    case 'in-flight': {
      const leaseUntil = integer(row, 'lease_until')
      const uncertain = isUncertain(row)
      return { ...last, state: 'in-flight', fingerprint: text(row, 'fingerprint'), attempt, uncertain, leaseUntil }
    }
    case 'completed':
      return { ...last, state: 'completed', fingerprint: text(row, 'fingerprint'), attempt, answer: answerIn(row) }
    case 'failed': {
      const uncertain = isUncertain(row)
      const fingerprint = uncertain ? text(row, 'fingerprint') : null
      return { ...last, state: 'failed', fingerprint, attempt, uncertain }
    }
    default:
      throw damaged('state')
  }
}

/** In the order of the table's columns. */
export function valuesOf(record: StoredRecord): SqliteValue[] {
  const { state, token, fingerprint, attempt, expiresAt } = record
  const uncertain = state !== 'completed' && record.uncertain ? 1 : 0
  const leaseUntil = state === 'in-flight' ? record.leaseUntil : null
  const answer = state === 'completed' ? answerValuesOf(record.answer) : [null, null, null]
  return [FORMAT, state, token, fingerprint, attempt, uncertain, leaseUntil, expiresAt, ...answer, null]
}

/** @throws SqliteStoreError `record_unreadable`. */
export function stepIn(row: Row): StoredStep {
  const { state, result } = row
  if (state !== 'begun' && state !== 'done' && state !== 'undone') throw damaged('state of a step')
  if (result !== null && !(result instanceof Uint8Array)) throw damaged('result')
  return { label: text(row, 'label'), state, order: integer(row, 'step_order'), result }
}

export function isKnownFormat({ format }: Row): boolean {
  return format === FORMAT || format === CHECKED_FORMAT
}

const CHECKED = [
  ...['key', 'format', 'state', 'token', 'fingerprint', 'attempt', 'uncertain', 'lease_until', 'expires_at'],
  ...['status', 'head'],
]

/**
 * Before its time is looked at: a row whose `expires_at` is damaged is not absent.
 *
 * @throws SqliteStoreError `record_unreadable`.
 */
function check(row: Row): void {
  const { checksum, body } = row
  if (!(checksum instanceof Uint8Array) || !checksumOf(row, body).equals(checksum)) throw damaged('checksum')
}

/** The SHA-256 of a row in the format that has it: of its columns, as JSON, and the bytes of its body. */
function checksumOf(row: Row, body: unknown): Buffer {
  const hash = createHash('sha256')
  const hasBody = body instanceof Uint8Array
  hash.update(JSON.stringify([...CHECKED.map((column) => row[column]), hasBody]))
  if (hasBody) hash.update(body)
  return hash.digest()
}

/** The head as JSON, which escapes U+0000 and lone surrogates: a SQLite text would lose them. */
function answerValuesOf({ status, statusMessage, headers, body }: Answer): SqliteValue[] {
  return [status, JSON.stringify([statusMessage, headers]), body]
}

function answerIn(row: Row): Answer {
  const { body } = row
  if (body !== null && !(body instanceof Uint8Array)) throw damaged('body')
  const head = parsed(text(row, 'head'))
  if (!isHead(head)) throw damaged('head')
  const [statusMessage, headers] = head
  return { status: integer(row, 'status'), statusMessage, headers, body }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined // Not the parser's own error, which would quote the record.
  }
}

function isHead(head: unknown): head is [string, Answer['headers']] {
  if (!Array.isArray(head) || head.length !== 2) return false
  const [statusMessage, headers] = head
  return typeof statusMessage === 'string' && Array.isArray(headers) && headers.every(isPair)
}

function isPair(pair: unknown): boolean {
  return Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string')
}

function text(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw damaged(column)
  return value
}

export function integer(row: Row, column: string): number {
  const value = row[column]
  if (!Number.isInteger(value)) throw damaged(column)
  return value as number
}

function isUncertain(row: Row): boolean {
  const { uncertain } = row
  if (uncertain !== 0 && uncertain !== 1) throw damaged('uncertain')
  return uncertain === 1
}

function damaged(column: string): SqliteStoreError {
  return unreadable(`its column ${column} is damaged`)
}

function unreadable(because: string): SqliteStoreError {
  return new SqliteStoreError('record_unreadable', `The record cannot be read, and was left unchanged: ${because}.`)
}
