import { Buffer } from 'node:buffer'
import type {
  Answer,
  BeginReply,
  CommandReply,
  Entered,
  Fenced,
  IdempotencyRecord,
  ListedRecords,
  Looked,
  PreviousOutcome,
} from '../../src/core/index.js'
import { rowsIn } from '../sql/client-transactions.js'
import { headIn } from '../sql/record-columns.js'
import { PostgresStoreError } from './errors.js'

/** A row that one of the functions returned. */
export type Row = Readonly<Record<string, unknown>>

export function rowsOf(result: unknown): readonly Row[] {
  const rows = rowsIn(result)
  if (rows === null) throw unexpected()
  return rows
}

export function rowOf(result: unknown): Row {
  const [row] = rowsOf(result)
  if (row === undefined) throw unexpected()
  return row
}

export function readBegun(row: Row): BeginReply {
  if (text(row, 'reply') !== 'acquired') return { acquired: false, record: readRecord(row) }
  const attempt = integer(row, 'attempt')
  return { acquired: true, attempt, previousOutcome: previousOutcome(attempt, isUncertain(row)) }
}

export function readLooked(row: Row): Looked {
  if (text(row, 'reply') !== 'free') return { acquired: false, record: readRecord(row) }
  const attempt = integer(row, 'attempt')
  const seen = row.seen === null ? null : text(row, 'seen')
  return { acquired: true, attempt, previousOutcome: previousOutcome(attempt, isUncertain(row)), seen }
}

export function readFenced(row: Row): Fenced {
  if (text(row, 'reply') === 'locked') return { isTaken: true, record: null, isOwn: false }
  return { isTaken: false, record: readInspected(row), isOwn: text(row, 'own') === 'true' }
}

export function readEntered(row: Row): Entered {
  const reply = text(row, 'reply')
  if (reply !== 'entered' && reply !== 'locked' && reply !== 'taken') throw unexpected()
  return reply
}

export function readDone(row: Row): CommandReply {
  return text(row, 'reply') === 'ok' ? { ok: true } : { ok: false, record: readInspected(row) }
}

export function readInspected(row: Row): IdempotencyRecord | null {
  return text(row, 'reply') === 'none' ? null : readRecord(row)
}

/** The last row contains the start of the next step. */
export function readListed(rows: readonly Row[]): ListedRecords {
  const last = rows.at(-1)
  if (last === undefined) throw unexpected()
  const records = rows.slice(0, -1).map((row) => ({
    key: text(row, 'name'),
    record: readRecord(row),
    retentionRemainingMs: integer(row, 'retention'),
  }))
  return { records, next: last.block === null ? null : text(last, 'block') }
}

function readRecord(row: Row): IdempotencyRecord {
  const attempt = integer(row, 'attempt')
  switch (text(row, 'reply')) {
    case 'in-flight': {
      const fingerprint = text(row, 'fingerprint')
      return {
        state: 'in-flight',
        fingerprint,
        attempt,
        uncertain: isUncertain(row),
        leaseRemainingMs: integer(row, 'lease'),
      }
    }
    case 'completed':
      return { state: 'completed', fingerprint: text(row, 'fingerprint'), attempt, answer: readAnswer(row) }
    case 'failed': {
      const uncertain = isUncertain(row)
      return { state: 'failed', fingerprint: uncertain ? text(row, 'fingerprint') : null, attempt, uncertain }
    }
    default:
      throw unexpected()
  }
}

/** Derived as in the machine. */
function previousOutcome(attempt: number, uncertain: boolean): PreviousOutcome {
  if (uncertain) return 'unknown'
  return attempt > 1 ? 'failed' : 'none'
}

/** `null` if the reply does not show it, because the fingerprint differs. */
function readAnswer(row: Row): Answer | null {
  if (row.status === null) return null
  return { status: integer(row, 'status'), ...readHead(text(row, 'head')), body: readBody(row.body) }
}

function readHead(json: string): Pick<Answer, 'statusMessage' | 'headers'> {
  const head = headIn(json)
  if (head === null)
    throw new PostgresStoreError('record_unreadable', 'The head of the answer in the record is damaged.')
  return head
}

/** Some clients return bytes that are not a Buffer. */
function readBody(body: unknown): Uint8Array | null {
  if (body === null || Buffer.isBuffer(body)) return body
  if (!(body instanceof Uint8Array)) throw unexpected()
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

export function text(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw unexpected()
  return value
}

export function integer(row: Row, column: string): number {
  const digits = text(row, column)
  if (!/^-?\d+$/.test(digits)) throw unexpected()
  return Number(digits)
}

function isUncertain(row: Row): boolean {
  return text(row, 'uncertain') === 'true'
}

function unexpected(): PostgresStoreError {
  return new PostgresStoreError(
    'client_unsuitable',
    'The client returned an unknown format. Expected { rows } or the rows, each an object with a ' +
      'string for each text column, and a Buffer for bytes.',
  )
}
