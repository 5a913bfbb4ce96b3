import { Buffer } from 'node:buffer'
import type {
  Answer,
  BeginReply,
  CommandReply,
  IdempotencyRecord,
  ListedRecord,
  PreviousOutcome,
  ShownStep,
  Step,
} from '../../src/core/index.js'

/**
 * A reply of one of the scripts: an integer, or a list of strings as Buffers and of integers as numbers or digits. Anything
 * else is a store failure.
 */
type Reply = readonly unknown[]

const UNREADABLE = -1
const NONE = 0
const OK = 1
const RESTORED = 2
const ACQUIRED = 1
const IN_FLIGHT = 2
const COMPLETED = 3
const FAILED = 4
const OUTCOMES: readonly PreviousOutcome[] = ['none', 'failed', 'unknown']

export function parseBeginReply(reply: unknown): BeginReply {
  const fields = parseFields(reply)
  if (parseInteger(fields[0]) !== ACQUIRED) return { acquired: false, record: readRecord(fields) }
  const previousOutcome = OUTCOMES[parseInteger(fields[2])]
  if (previousOutcome === undefined) throw unexpectedReplyError()
  const acquired = { acquired: true, attempt: parseInteger(fields[1]), previousOutcome } as const
  return fields.length === 3 ? acquired : { ...acquired, steps: readSteps(fields) }
}

/** Four fields each, after the first three. */
function readSteps(fields: Reply): Step[] {
  const steps: Step[] = []
  for (let i = 3; i < fields.length; i += 4) {
    const result = parseInteger(fields[i + 2]) === 1 ? parseBytes(fields[i + 3]) : null
    steps.push({ ...readShownStep(fields, i), result })
  }
  return steps
}

function readShownStep(fields: Reply, from: number): ShownStep {
  const state = parseText(fields[from + 1])
  if (state !== 'begun' && state !== 'done') throw unexpectedReplyError()
  return { label: parseText(fields[from]), state }
}

export function parseCommandReply(reply: unknown): CommandReply {
  if (Array.isArray(reply)) return { ok: false, record: readRecord(reply) }
  if (parseInteger(reply) === RESTORED) return { ok: true, restored: true }
  return parseInteger(reply) === OK ? DONE : { ok: false, record: parseInspectReply(reply) }
}

const DONE: CommandReply = Object.freeze({ ok: true })

export function parseInspectReply(reply: unknown): IdempotencyRecord | null {
  if (isNone(reply)) return null
  const fields = parseFields(reply)
  const record = readRecord(fields)
  const last = fields.at(-1)
  if (record.state === 'completed' || !Array.isArray(last)) return record
  const steps: ShownStep[] = []
  for (let i = 1; i < last.length; i += 2) steps.push(readShownStep(last, i))
  const rerun = record.state === 'failed' && parseInteger(last[0]) === 1 ? { rerun: true as const } : {}
  return { ...record, ...(steps.length > 0 && { steps }), ...rerun }
}

/** Of a walk; `null`: it is not listed. */
export function parseListedRecord(reply: unknown): Omit<ListedRecord, 'key'> | 'unreadable' | null {
  if (isNone(reply)) return null
  if (!Array.isArray(reply) && parseInteger(reply) === UNREADABLE) return 'unreadable'
  const [retentionRemainingMs, record] = parseFields(reply)
  return { record: readRecord(parseFields(record)), retentionRemainingMs: parseInteger(retentionRemainingMs) }
}

/** Of SCAN. */
export function parseScanReply(reply: unknown): { readonly cursor: string; readonly keys: readonly string[] } {
  const fields = parseFields(reply)
  const keys = parseFields(fields[1])
  return { cursor: parseText(fields[0]), keys: keys.map((key) => parseText(key)) }
}

function readRecord(fields: Reply): IdempotencyRecord {
  const attempt = parseInteger(fields[1])
  switch (parseInteger(fields[0])) {
    case IN_FLIGHT: {
      const uncertain = parseInteger(fields[3]) === 1
      const leaseRemainingMs = parseInteger(fields[4])
      return { state: 'in-flight', fingerprint: parseText(fields[2]), attempt, uncertain, leaseRemainingMs }
    }
    case COMPLETED: {
      if (fields.length === 3) return { state: 'completed', fingerprint: parseText(fields[2]), attempt, answer: null }
      const fingerprint = parseText(fields[2], 0, parseInteger(fields[3]))
      return { state: 'completed', fingerprint, attempt, answer: readAnswer(fields) }
    }
    case FAILED: {
      const uncertain = parseInteger(fields[3]) === 1
      return { state: 'failed', fingerprint: uncertain ? parseText(fields[2]) : null, attempt, uncertain }
    }
    default:
      throw unexpectedReplyError()
  }
}

/** Fingerprint, status message and headers are one text, whose first two lengths are in the reply. */
function readAnswer(fields: Reply): Answer {
  const messageFrom = parseInteger(fields[3])
  const headersFrom = messageFrom + parseInteger(fields[4])
  return {
    status: parseInteger(fields[5]),
    statusMessage: parseText(fields[2], messageFrom, headersFrom),
    headers: readHeaders(parseText(fields[2], headersFrom)),
    body: parseInteger(fields[6]) === 1 ? parseBytes(fields[7]) : null,
  }
}

/** Not the parser's own error, which would quote the headers. */
function readHeaders(json: string): Answer['headers'] {
  let headers: unknown
  try {
    headers = JSON.parse(json)
  } catch {}
  if (!Array.isArray(headers) || !headers.every(isPair)) throw new TypeError('The headers in the record are damaged.')
  return headers as Answer['headers']
}

function isPair(pair: unknown): boolean {
  return Array.isArray(pair) && pair.length === 2 && typeof pair[0] === 'string' && typeof pair[1] === 'string'
}

function isNone(reply: unknown): boolean {
  return !Array.isArray(reply) && parseInteger(reply) === NONE
}

function parseFields(reply: unknown): Reply {
  if (!Array.isArray(reply)) throw unexpectedReplyError()
  return reply
}

function parseBytes(field: unknown): Buffer {
  if (!Buffer.isBuffer(field)) throw unexpectedReplyError()
  return field
}

function parseText(field: unknown, from?: number, to?: number): string {
  return parseBytes(field).toString('utf8', from, to)
}

/** Clients can be configured to return integers as strings (ioredis: `stringNumbers`). */
function parseInteger(field: unknown): number {
  if (typeof field === 'number' && Number.isInteger(field)) return field
  const digits = String(field)
  if (!/^-?\d+$/.test(digits)) throw unexpectedReplyError()
  return Number(digits)
}

function unexpectedReplyError(): Error {
  return new TypeError(
    'The reply from Redis has an unknown format. A `sendCommand` must resolve with strings as Buffers and with ' +
      'integers as numbers.',
  )
}
