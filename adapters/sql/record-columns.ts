import type { Answer, ListedRecord, ListedRecords, machine } from '../../src/core/index.js'
import { OWNERSHIP_ERRORS } from './errors.js'
import { DamagedRowError, type Row, requireIntegerColumn, requireTextColumn } from './row.js'
import { encodeSteps, parseStepsColumn } from './steps-column.js'

export type StoredRecord = machine.StoredRecord

/** The format of rows that this version writes, and the only one that it reads. */
export const FORMAT = 1

/** The columns of a first claim. */
export const CLAIMED_COLUMNS =
  'id, name, format, revision, state, token, fingerprint, attempt, uncertain, lease_until, expires_at'

/** Those of numbers. */
export const INTEGER_COLUMNS = ['format', 'revision', 'attempt', 'uncertain', 'lease_until', 'expires_at', 'status']

/** The columns that are written with each change of a record. */
export const RECORD_COLUMNS = [
  ...(['state', 'token', 'fingerprint', 'attempt', 'uncertain', 'lease_until', 'expires_at'] as const),
  ...(['status', 'head', 'body', 'steps'] as const),
]

/**
 * What a row of format 1 must be, whoever writes it, for the CHECK of a table. `toText` writes a text of ASCII letters as the database's
 * columns hold it.
 */
export function buildFormatCheckSql(toText = (text: string) => `'${text}'`): string {
  const noAnswer = 'status IS NULL AND head IS NULL AND body IS NULL'
  return `CHECK (format <> ${FORMAT} OR CASE state
    WHEN ${toText('in-flight')} THEN fingerprint IS NOT NULL AND lease_until IS NOT NULL AND ${noAnswer}
    WHEN ${toText('completed')} THEN fingerprint IS NOT NULL AND uncertain = 0 AND lease_until IS NULL
      AND status IS NOT NULL AND head IS NOT NULL AND steps IS NULL
    WHEN ${toText('failed')} THEN uncertain = CASE WHEN fingerprint IS NULL THEN 0 ELSE 1 END AND lease_until IS NULL AND ${noAnswer}
    ELSE 1 = 0
  END)`
}

export function toRecordColumns(record: StoredRecord) {
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
    steps: encodeSteps(record),
  }
}

const NO_ANSWER = { status: null, head: null, body: null }

/** `head`: the reason phrase and the headers, as JSON. */
export function toAnswerColumns({ status, statusMessage, headers, body }: Answer) {
  return { status, head: encodeAsciiJson([statusMessage, headers]), body }
}

/** ASCII, because the database, or the connection, may have any encoding; escaped, because a Postgres text cannot contain U+0000. */
function encodeAsciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

export type InFlight = Extract<StoredRecord, { state: 'in-flight' }>

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

/** What a row was when it was read: it is changed only while it is still that. */
export interface RowVersion {
  readonly token: string
  readonly revision: number
  readonly expiresAt: number
}

export function isSameVersion(one: RowVersion | null, other: RowVersion | null | undefined): boolean {
  return one !== null && one.token === other?.token && one.revision === other.revision
}

/** What was found of a key, and when, by the database's clock. */
export interface RecordSnapshot {
  readonly now: number
  /** `null`: there is none, or it has expired. */
  readonly record: StoredRecord | null
  /** `null`: there is no row. */
  readonly version: RowVersion | null
}

/**
 * A row without a token is none: the time alone. `toUnreadableError` makes the error for a record that was left unchanged.
 *
 * @throws the store's error `record_unreadable`.
 */
export function parseSnapshot(row: Row, toUnreadableError: (because: string) => Error): RecordSnapshot {
  try {
    const now = requireIntegerColumn(row, 'now')
    if (row.token === null || row.token === undefined) return { now, record: null, version: null }
    const expiresAt = requireIntegerColumn(row, 'expires_at')
    const version = { token: String(row.token), revision: requireIntegerColumn(row, 'revision'), expiresAt }
    if (now >= expiresAt) return { now, record: null, version }
    if (row.format !== FORMAT) throw toUnreadableError(LATER_FORMAT)
    return { now, record: parseRecordRow(row), version }
  } catch (error) {
    throw error instanceof DamagedRowError ? toUnreadableError(error.message) : error
  }
}

const LATER_FORMAT = 'a later version of the library wrote it, in a format that this version does not know'

export function buildUnreadableMessage(because: string): string {
  return `The record cannot be read, and was left unchanged: ${because}.`
}

/** What is shown of rows. The keys of those that cannot be read are named apart. */
export function collectListedRecords(
  rows: readonly Row[],
  show: (row: Row) => Omit<ListedRecord, 'key'> | null,
): Omit<ListedRecords, 'next'> {
  const records: ListedRecord[] = []
  const unreadable: string[] = []
  for (const row of rows) {
    const key = String(row.name)
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

/** @throws DamagedRowError */
function parseRecordRow(row: Row): StoredRecord {
  const last = { token: requireTextColumn(row, 'token'), expiresAt: requireIntegerColumn(row, 'expires_at') }
  const attempt = requireIntegerColumn(row, 'attempt')
  switch (row.state) {
    case 'in-flight': {
      const leaseUntil = requireIntegerColumn(row, 'lease_until')
      const fingerprint = requireTextColumn(row, 'fingerprint')
      const { steps } = parseStepsColumn(row.steps)
      const kept = { attempt, uncertain: isUncertain(row), leaseUntil, ...(steps && { steps }) }
      return { ...last, state: 'in-flight', fingerprint, ...kept }
    }
    case 'completed': {
      const fingerprint = requireTextColumn(row, 'fingerprint')
      return { ...last, state: 'completed', fingerprint, attempt, answer: parseAnswerColumns(row) }
    }
    case 'failed': {
      const uncertain = isUncertain(row)
      const fingerprint = uncertain ? requireTextColumn(row, 'fingerprint') : null
      const { steps, rerun } = parseStepsColumn(row.steps)
      const kept = { ...(steps !== undefined && { steps }), ...(rerun && { rerun }) }
      return { ...last, state: 'failed', fingerprint, attempt, uncertain, ...kept }
    }
    default:
      throw new DamagedRowError('state')
  }
}

function isUncertain({ uncertain }: Row): boolean {
  if (uncertain !== 0 && uncertain !== 1) throw new DamagedRowError('uncertain')
  return uncertain === 1
}

function parseAnswerColumns(row: Row): Answer {
  const { body } = row
  if (body !== null && !(body instanceof Uint8Array)) throw new DamagedRowError('body')
  return { status: requireIntegerColumn(row, 'status'), ...parseHead(requireTextColumn(row, 'head')), body }
}

function parseHead(json: string): Pick<Answer, 'statusMessage' | 'headers'> {
  try {
    const [statusMessage, headers, ...others] = JSON.parse(json)
    if (typeof statusMessage === 'string' && Array.isArray(headers) && headers.every(isPair) && others.length === 0) {
      return { statusMessage, headers }
    }
  } catch {} // Not the parser's own error, which would quote the record.
  throw new DamagedRowError('head')
}

function isPair(pair: unknown): boolean {
  return Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string')
}
