import type { Answer, ListedRecord, ListedRecords, machine } from '../../src/core/index.js'
import { OWNERSHIP_ERRORS } from './errors.js'

export type StoredRecord = machine.StoredRecord
export type InFlight = Extract<StoredRecord, { state: 'in-flight' }>

/** A row, by the names of its columns: text as strings, numbers as integers, bytes as they are. */
export type Row = Readonly<Record<string, unknown>>

/** The columns of a record, but those that a store adds. */
interface RecordColumns {
  readonly state: StoredRecord['state']
  readonly token: string
  readonly fingerprint: string | null
  readonly attempt: number
  readonly uncertain: 0 | 1
  readonly lease_until: number | null
  readonly expires_at: number
  readonly status: number | null
  /** The reason phrase and the headers of the answer, as JSON. */
  readonly head: string | null
  readonly body: Uint8Array | null
}

/** A column has a value that no version of the library writes. The message contains no value. */
export class DamagedRowError extends Error {
  constructor(column: string) {
    super(`its column ${column} is damaged`)
  }
}

/** Without the steps. */
export function toRecordColumns(record: StoredRecord): RecordColumns {
  const { state, token, fingerprint, attempt, expiresAt } = record
  return {
    state,
    token,
    fingerprint,
    attempt,
    uncertain: state !== 'completed' && record.uncertain ? 1 : 0,
    lease_until: state === 'in-flight' ? record.leaseUntil : null,
    expires_at: expiresAt,
    ...(state === 'completed' ? toAnswerColumns(record.answer) : NO_ANSWER),
  }
}

const NO_ANSWER = { status: null, head: null, body: null }

/** The head as JSON, which escapes U+0000 and lone surrogates: a database's text would lose them. */
function toAnswerColumns({ status, statusMessage, headers, body }: Answer) {
  return { status, head: JSON.stringify([statusMessage, headers]), body }
}

/**
 * The record in a row whose format is known, without its steps.
 *
 * @throws DamagedRowError
 */
export function parseRecordRow(row: Row): StoredRecord {
  const last = { token: requireTextColumn(row, 'token'), expiresAt: requireIntegerColumn(row, 'expires_at') }
  const attempt = requireIntegerColumn(row, 'attempt')
  switch (row.state) {
    case 'in-flight': {
      const leaseUntil = requireIntegerColumn(row, 'lease_until')
      const uncertain = isUncertain(row)
      return {
        ...last,
        state: 'in-flight',
        fingerprint: requireTextColumn(row, 'fingerprint'),
        attempt,
        uncertain,
        leaseUntil,
      }
    }
    case 'completed':
      return {
        ...last,
        state: 'completed',
        fingerprint: requireTextColumn(row, 'fingerprint'),
        attempt,
        answer: parseAnswerColumns(row),
      }
    case 'failed': {
      const uncertain = isUncertain(row)
      const fingerprint = uncertain ? requireTextColumn(row, 'fingerprint') : null
      return { ...last, state: 'failed', fingerprint, attempt, uncertain }
    }
    default:
      throw new DamagedRowError('state')
  }
}

function parseAnswerColumns(row: Row): Answer {
  const { body } = row
  if (body !== null && !(body instanceof Uint8Array)) throw new DamagedRowError('body')
  const head = parseHead(requireTextColumn(row, 'head'))
  if (head === null) throw new DamagedRowError('head')
  return { status: requireIntegerColumn(row, 'status'), ...head, body }
}

export function encodeAsciiHead({ statusMessage, headers }: Pick<Answer, 'statusMessage' | 'headers'>): string {
  return encodeAsciiJson([statusMessage, headers])
}

/** ASCII, because the database, or the connection, may have any encoding; escaped, because a Postgres text cannot contain U+0000. */
export function encodeAsciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** `null`: it is damaged. */
export function parseHead(json: string): Pick<Answer, 'statusMessage' | 'headers'> | null {
  const head = parseJsonIfValid(json)
  if (!isHead(head)) return null
  const [statusMessage, headers] = head
  return { statusMessage, headers }
}

function parseJsonIfValid(json: string): unknown {
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

/** @throws DamagedRowError */
export function requireTextColumn(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new DamagedRowError(column)
  return value
}

/** @throws DamagedRowError */
export function requireIntegerColumn(row: Row, column: string): number {
  const value = row[column]
  if (!Number.isSafeInteger(value)) throw new DamagedRowError(column)
  return value as number
}

/** @throws the store's error unless the record is in flight, and has this token. */
export function requireOwned(
  record: StoredRecord | null,
  token: string,
  StoreError: new (code: keyof typeof OWNERSHIP_ERRORS, message: string) => Error,
): InFlight {
  if (record?.token === token && record.state === 'in-flight') return record
  const code = record === null ? 'record_absent' : record.token === token ? 'record_ended' : 'record_taken'
  throw new StoreError(code, OWNERSHIP_ERRORS[code])
}

export const LATER_FORMAT = 'a later version of the library wrote it, in a format that this version does not know'

export function buildUnreadableMessage(because: string): string {
  return `The record cannot be read, and was left unchanged: ${because}.`
}

/** A step of a walk through rows, which names apart what cannot be read. */
export function collectListed(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  show: (row: Row) => Omit<ListedRecord, 'key'> | null,
): Omit<ListedRecords, 'next'> {
  const records: ListedRecord[] = []
  const unreadable: string[] = []
  for (const row of rows) {
    const key = keyOf(row)
    try {
      const shown = show(row)
      if (shown !== null) records.push({ key, ...shown })
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== 'record_unreadable') throw error
      unreadable.push(key)
    }
  }
  return unreadable.length === 0 ? { records } : { records, unreadable }
}

function isUncertain(row: Row): boolean {
  const { uncertain } = row
  if (uncertain !== 0 && uncertain !== 1) throw new DamagedRowError('uncertain')
  return uncertain === 1
}
