import { Buffer } from 'node:buffer'
import {
  buildUnreadableMessage,
  DamagedRowError,
  LATER_FORMAT,
  parseRecordRow,
  type Row,
  requireIntegerColumn,
  type StoredRecord,
} from '../../sql/record-columns.js'
import { MySqlStoreError } from '../errors.js'
import { clockIsSetError } from './clock.js'
import type { Version } from './statements.js'
import { attachStepsColumn } from './steps-column.js'
import { FORMAT } from './table.js'

export interface RecordSnapshot {
  readonly now: number
  /** `null`: there is none, or it has expired. */
  readonly record: StoredRecord | null
  /** What the row is recognized by when it is written; `null`: there is no row. */
  readonly version: Version | null
}

/**
 * Reads a row, all of whose columns are text but those of bytes.
 *
 * @throws MySqlStoreError `record_unreadable`; `read_only`: the server says that it is a replica, whose rows may be of the past;
 * `database_unsuitable`: the session's clock was set.
 */
export function parseFoundRow(row: Row | undefined): RecordSnapshot {
  try {
    return parseNumberedRow(parseNumberColumns(row ?? {}))
  } catch (error) {
    throw error instanceof DamagedRowError ? recordUnreadableError(error.message) : error
  }
}

const NUMBERS = [
  ...[
    'now',
    'format',
    'revision',
    'attempt',
    'uncertain',
    'lease_until',
    'expires_at',
    'status',
    'read_only',
    'is_set',
  ],
]

function parseNumberColumns(row: Row): Row {
  const numbers = NUMBERS.map((name) => [name, toNumberIfInteger(row[name])] as const)
  return { ...row, ...Object.fromEntries(numbers) }
}

function toNumberIfInteger(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value
}

function parseNumberedRow(row: Row): RecordSnapshot {
  if (row.read_only === 1) {
    throw new MySqlStoreError('read_only', 'The server is read-only, as a replica is: connect to the primary.')
  }
  if (row.is_set === 1) throw clockIsSetError()
  const now = requireIntegerColumn(row, 'now')
  if (row.token === null) return { now, record: null, version: null }
  const expiresAt = requireIntegerColumn(row, 'expires_at')
  const version = { token: String(row.token), revision: requireIntegerColumn(row, 'revision'), expiresAt }
  if (now >= expiresAt) return { now, record: null, version }
  if (row.format !== FORMAT) {
    throw recordUnreadableError(LATER_FORMAT)
  }
  return { now, record: attachStepsColumn(parseRecordRow(row), row), version }
}

function recordUnreadableError(because: string): MySqlStoreError {
  return new MySqlStoreError('record_unreadable', buildUnreadableMessage(because))
}

/** Some clients return text as bytes. */
export function decodeTexts(row: Row): Row {
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    value instanceof Uint8Array ? decodeUtf8(value) : value,
  ])
  return { ...Object.fromEntries(entries), body: null, steps: null }
}

export function decodeSteps(row: Row): Row {
  const { steps } = row
  const hexadecimal = steps instanceof Uint8Array ? decodeUtf8(steps) : steps
  return { ...decodeTexts(row), steps: typeof hexadecimal === 'string' ? Buffer.from(hexadecimal, 'hex') : null }
}

function decodeUtf8(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}
