import { Buffer } from 'node:buffer'
import type {
  Answer,
  BeginReply,
  CommandReply,
  IdempotencyRecord,
  ListedRecord,
  PreviousOutcome,
} from '../../src/core/index.js'

/**
 * A reply of one of the scripts: strings as Buffers, integers as numbers or digits. Anything else is a store failure.
 */
type Reply = readonly unknown[]

export function readBegun(reply: unknown): BeginReply {
  const fields = fieldsOf(reply)
  if (text(fields, 0) !== 'acquired') return { acquired: false, record: readRecord(fields) }
  return { acquired: true, attempt: integer(fields, 1), previousOutcome: text(fields, 2) as PreviousOutcome }
}

export function readDone(reply: unknown): CommandReply {
  const fields = fieldsOf(reply)
  return text(fields, 0) === 'ok' ? { ok: true } : { ok: false, record: readInspected(fields) }
}

export function readInspected(reply: unknown): IdempotencyRecord | null {
  const fields = fieldsOf(reply)
  return text(fields, 0) === 'none' ? null : readRecord(fields)
}

/** Of a walk; `null`: it is not listed, or it cannot be read. */
export function readListed(reply: unknown): Omit<ListedRecord, 'key'> | null {
  const fields = fieldsOf(reply)
  if (text(fields, 0) === 'none') return null
  return { record: readRecord(fields.slice(0, -1)), retentionRemainingMs: integer(fields, fields.length - 1) }
}

/** Of SCAN. */
export function readScanned(reply: unknown): { readonly cursor: string; readonly keys: readonly string[] } {
  const fields = fieldsOf(reply)
  const keys = fieldsOf(fields[1])
  return { cursor: text(fields, 0), keys: keys.map((_, i) => text(keys, i)) }
}

function readRecord(fields: Reply): IdempotencyRecord {
  const fingerprint = text(fields, 1)
  const attempt = integer(fields, 2)
  switch (text(fields, 0)) {
    case 'in-flight': {
      const uncertain = integer(fields, 3) === 1
      return { state: 'in-flight', fingerprint, attempt, uncertain, leaseRemainingMs: integer(fields, 4) }
    }
    case 'completed':
      return { state: 'completed', fingerprint, attempt, answer: readAnswer(fields) }
    case 'failed': {
      const uncertain = integer(fields, 3) === 1
      return { state: 'failed', fingerprint: uncertain ? fingerprint : null, attempt, uncertain }
    }
    default:
      throw unexpected()
  }
}

/** `null`: not included in the reply. */
function readAnswer(fields: Reply): Answer | null {
  if (fields.length === 3) return null
  return {
    status: integer(fields, 3),
    statusMessage: text(fields, 4),
    headers: readHeaders(text(fields, 5)),
    body: integer(fields, 6) === 1 ? bytes(fields, 7) : null,
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
  return Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string')
}

function fieldsOf(reply: unknown): Reply {
  if (!Array.isArray(reply)) throw unexpected()
  return reply
}

function bytes(fields: Reply, index: number): Buffer {
  const field = fields[index]
  if (!Buffer.isBuffer(field)) throw unexpected()
  return field
}

function text(fields: Reply, index: number): string {
  return bytes(fields, index).toString('utf8')
}

/** Clients can be configured to return integers as strings (ioredis: `stringNumbers`). */
function integer(fields: Reply, index: number): number {
  const digits = String(fields[index])
  if (!/^-?\d+$/.test(digits)) throw unexpected()
  return Number(digits)
}

function unexpected(): Error {
  return new TypeError(
    'The reply from Redis has an unknown format. A `sendCommand` must resolve with strings as Buffers and with ' +
      'integers as numbers.',
  )
}
