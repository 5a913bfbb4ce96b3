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
  RecordedResult,
  ShownStep,
  Step,
} from '../../src/core/index.js'
import { findRows } from '../sql/clients.js'
import { parseHead } from '../sql/record-columns.js'
import { PostgresStoreError } from './errors.js'

/** A row that one of the functions returned. */
export type Row = Readonly<Record<string, unknown>>

export function requireRows(result: unknown): readonly Row[] {
  const rows = findRows(result)
  if (rows === null) throw clientUnsuitableError()
  return rows
}

export function requireRow(result: unknown): Row {
  const [row] = requireRows(result)
  if (row === undefined) throw clientUnsuitableError()
  return row
}

export function readBeginReply(row: Row): BeginReply {
  if (readText(row, 'reply') !== 'acquired') return { acquired: false, record: readRecord(row) }
  const attempt = readInteger(row, 'attempt')
  const steps = parseStepRows(row).map(readStep)
  const previous = toPreviousOutcome(attempt, isUncertain(row))
  return { acquired: true, attempt, previousOutcome: previous, ...(steps.length > 0 && { steps }) }
}

/** As the functions show them: label, state and result. Labels are JSON, in any encoding of the database. */
function parseStepRows({ steps }: Row): unknown[][] {
  if (steps === null || steps === undefined) return []
  const list: unknown = typeof steps === 'string' ? JSON.parse(steps) : undefined
  if (!Array.isArray(list) || !list.every(Array.isArray)) throw clientUnsuitableError()
  return list
}

function readStep(fields: unknown[]): Step {
  const [, , result] = fields
  return { ...readShownStep(fields), result: typeof result === 'string' ? Buffer.from(result, 'base64') : null }
}

function readShownStep([label, state]: unknown[]): ShownStep {
  if (typeof label !== 'string' || (state !== 'begun' && state !== 'done')) throw clientUnsuitableError()
  return { label: JSON.parse(label), state }
}

export function readLookReply(row: Row): Looked {
  if (readText(row, 'reply') !== 'free') return { acquired: false, record: readRecord(row) }
  const attempt = readInteger(row, 'attempt')
  const seen = row.seen === null ? null : readText(row, 'seen')
  return { acquired: true, attempt, previousOutcome: toPreviousOutcome(attempt, isUncertain(row)), seen }
}

export function readFenceReply(row: Row): Fenced {
  if (readText(row, 'reply') === 'locked') return { isTaken: true, record: null, isOwn: false }
  return { isTaken: false, record: readInspectReply(row), isOwn: readText(row, 'own') === 'true' }
}

export function readEnterReply(row: Row): Entered {
  const reply = readText(row, 'reply')
  if (reply !== 'entered' && reply !== 'locked' && reply !== 'taken') throw clientUnsuitableError()
  return reply
}

export function readCommandReply(row: Row): CommandReply {
  if (readText(row, 'reply') === 'restored') return { ok: true, restored: true }
  return readText(row, 'reply') === 'ok' ? { ok: true } : { ok: false, record: readInspectReply(row) }
}

export function readInspectReply(row: Row): IdempotencyRecord | null {
  if (readText(row, 'reply') === 'none') return null
  const record = readRecord(row)
  const rows = parseStepRows(row)
  if (record.state === 'completed' || rows.length === 0) return record
  const steps = rows.filter(([, state]) => state !== 'rerun').map(readShownStep)
  const isMarked = record.state === 'failed' && steps.length < rows.length
  return { ...record, ...(steps.length > 0 && { steps }), ...(isMarked && { rerun: true as const }) }
}

/** Of a step inside a transaction. */
export function parseRecordedResult(row: Row): RecordedResult {
  return readText(row, 'reply') === 'recorded' ? { result: parseBytes(row.result) } : null
}

/** The last row contains the start of the next step, and, from revision 3 on, the names of the records that could not be read. */
export function readListReply(rows: readonly Row[]): ListedRecords {
  const last = rows.at(-1)
  if (last === undefined) throw clientUnsuitableError()
  const records = rows.slice(0, -1).map((row) => ({
    key: readText(row, 'name'),
    record: readRecord(row),
    retentionRemainingMs: readInteger(row, 'retention'),
  }))
  const reply = readText(last, 'reply')
  const unreadable: string[] = reply.startsWith('[') ? JSON.parse(reply) : []
  const next = last.block === null ? null : readText(last, 'block')
  return { records, next, ...(unreadable.length > 0 && { unreadable }) }
}

function readRecord(row: Row): IdempotencyRecord {
  const attempt = readInteger(row, 'attempt')
  switch (readText(row, 'reply')) {
    case 'in-flight': {
      const fingerprint = readText(row, 'fingerprint')
      return {
        state: 'in-flight',
        fingerprint,
        attempt,
        uncertain: isUncertain(row),
        leaseRemainingMs: readInteger(row, 'lease'),
      }
    }
    case 'completed':
      return { state: 'completed', fingerprint: readText(row, 'fingerprint'), attempt, answer: readAnswer(row) }
    case 'failed': {
      const uncertain = isUncertain(row)
      return { state: 'failed', fingerprint: uncertain ? readText(row, 'fingerprint') : null, attempt, uncertain }
    }
    default:
      throw clientUnsuitableError()
  }
}

/** Derived as in the machine. */
function toPreviousOutcome(attempt: number, uncertain: boolean): PreviousOutcome {
  if (uncertain) return 'unknown'
  return attempt > 1 ? 'failed' : 'none'
}

/** `null` if the reply does not show it, because the fingerprint differs. */
function readAnswer(row: Row): Answer | null {
  if (row.status === null) return null
  return { status: readInteger(row, 'status'), ...readHead(readText(row, 'head')), body: parseBytes(row.body) }
}

function readHead(json: string): Pick<Answer, 'statusMessage' | 'headers'> {
  const head = parseHead(json)
  if (head === null)
    throw new PostgresStoreError('record_unreadable', 'The head of the answer in the record is damaged.')
  return head
}

/** Some clients return bytes that are not a Buffer. */
function parseBytes(body: unknown): Uint8Array | null {
  if (body === null || Buffer.isBuffer(body)) return body
  if (!(body instanceof Uint8Array)) throw clientUnsuitableError()
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

export function readText(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw clientUnsuitableError()
  return value
}

export function readInteger(row: Row, column: string): number {
  const digits = readText(row, column)
  if (!/^-?\d+$/.test(digits)) throw clientUnsuitableError()
  return Number(digits)
}

function isUncertain(row: Row): boolean {
  return readText(row, 'uncertain') === 'true'
}

function clientUnsuitableError(): PostgresStoreError {
  return new PostgresStoreError(
    'client_unsuitable',
    'The client returned an unknown format. Expected { rows } or the rows, each an object with a ' +
      'string for each text column, and a Buffer for bytes.',
  )
}
