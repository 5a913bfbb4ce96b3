import { Buffer } from 'node:buffer'
import type { StoredRecord } from '../record/machine.js'
import { recordUnreadableError } from './cas-store-error.js'

/** Frozen within a major version, and held by golden texts. */
const FORMAT = 1

/**
 * A record as text, for a database that keeps no bytes inside of an object: JSON, with the bytes of the answer and of the results of steps
 * as base64. It is ASCII, so a column of any encoding keeps it. It contains the answer, and is not encrypted.
 *
 * @example const swap = (key, version, record) => file.writeIfUnchanged(key, version, encodeRecord(record))
 */
export function encodeRecord(record: StoredRecord): string {
  return JSON.stringify({ format: FORMAT, ...record, ...encodeBytes(record) }).replace(/[\u007f-\uffff]/g, escapeUnit)
}

/**
 * The record that `read` or `list` returned, as it is or as its text.
 *
 * @throws CasStoreError `record_unreadable`
 */
export function parseRecord(kept: unknown): StoredRecord {
  const record = typeof kept === 'string' ? parseText(kept) : kept
  const damaged = findDamagedMember(record)
  if (damaged !== null) throw recordUnreadableError(`its ${damaged} is damaged`)
  return record as StoredRecord
}

function encodeBytes(record: StoredRecord) {
  if (record.state === 'completed') return { answer: { ...record.answer, body: toBase64(record.answer.body) } }
  return record.steps && { steps: record.steps.map((step) => ({ ...step, result: toBase64(step.result) })) }
}

function toBase64(bytes: Uint8Array | null): string | null {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function parseText(text: string): unknown {
  const { format, ...record } = parseObject(text)
  if (format !== FORMAT) throw recordUnreadableError(isLater(format) ? LATER : 'it is not a text of encodeRecord()')
  const { answer, steps } = record
  if (isObject(answer)) return { ...record, answer: parseBytes(answer, 'body') }
  return Array.isArray(steps) ? { ...record, steps: steps.map((step) => parseBytes(step, 'result')) } : record
}

const LATER = 'a later version of the library encoded it, in a format that this version does not know'

function isLater(format: unknown): boolean {
  return typeof format === 'number' && format > FORMAT
}

function parseObject(text: string): Members {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {} // Not the parser's own error, which would quote the record.
  return {}
}

/** What is not base64 stays as it is, and is found as damage. */
function parseBytes(holder: Members, name: string): Members {
  const text = Object(holder)[name]
  return isBase64(text) ? { ...holder, [name]: Buffer.from(text, 'base64') } : holder
}

function isBase64(text: unknown): text is string {
  return typeof text === 'string' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}

// --- what a record consists of

type Members = Readonly<Record<string, unknown>>
type Check = (value: unknown) => boolean

/** The name of a member that no version of the library writes so; `null`: the machine can decide on the record. */
function findDamagedMember(record: unknown): string | null {
  const checks = isObject(record) ? CHECKS.get(record.state) : undefined
  if (!isObject(record) || checks === undefined) return 'state'
  const damaged = Object.keys(checks).find((name) => checks[name]?.(record[name]) !== true)
  // A failed record is bound to its fingerprint exactly while it is uncertain.
  const isBound = record.state !== 'failed' || record.uncertain === (record.fingerprint !== null)
  return damaged ?? (isBound ? null : 'fingerprint')
}

const isText: Check = (value) => typeof value === 'string'
const isTextOrNull: Check = (value) => value === null || isText(value)
const isBoolean: Check = (value) => typeof value === 'boolean'
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isTime: Check = (value) => Number.isFinite(value)
const isBytesOrNull: Check = (value) => value === null || ArrayBuffer.isView(value)
const isMark: Check = (value) => value === undefined || value === true
const isSteps: Check = (value) => value === undefined || (Array.isArray(value) && value.every(isStep))

const EACH = { token: isText, attempt: isCount, expiresAt: isTime }

const CHECKS: ReadonlyMap<unknown, Readonly<Record<string, Check>>> = new Map<unknown, Record<string, Check>>([
  ['in-flight', { ...EACH, fingerprint: isText, uncertain: isBoolean, leaseUntil: isTime, steps: isSteps }],
  ['completed', { ...EACH, fingerprint: isText, answer: isAnswer }],
  ['failed', { ...EACH, fingerprint: isTextOrNull, uncertain: isBoolean, steps: isSteps, rerun: isMark }],
])

function isAnswer(answer: unknown): boolean {
  if (!isObject(answer)) return false
  const { status, statusMessage, headers, body } = answer
  if (!Number.isInteger(status) || typeof statusMessage !== 'string') return false
  return Array.isArray(headers) && headers.every(isPair) && isBytesOrNull(body)
}

function isPair(pair: unknown): boolean {
  return Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string')
}

function isStep(step: unknown): boolean {
  if (!isObject(step) || typeof step.label !== 'string') return false
  return STEP_STATES.has(step.state) && isCount(step.order) && isBytesOrNull(step.result)
}

const STEP_STATES = new Set<unknown>(['begun', 'done', 'undone'])

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null
}
