import { Buffer } from 'node:buffer'
import type { Answer, Begun, Done, IdempotencyRecord, PreviousOutcome } from '../../src/core/index.js'

/** A reply of one of the scripts: strings as Buffers, numbers as numbers. Anything else is a store failure. */
type Reply = readonly unknown[]

export function readBegun(reply: unknown): Begun {
  const fields = fieldsOf(reply)
  if (text(fields, 0) !== 'acquired') return { acquired: false, record: readRecord(fields) }
  return { acquired: true, attempt: number(fields, 1), previousOutcome: text(fields, 2) as PreviousOutcome }
}

export function readDone(reply: unknown): Done {
  const fields = fieldsOf(reply)
  return text(fields, 0) === 'ok' ? { ok: true } : { ok: false, record: readRecord(fields) }
}

function readRecord(fields: Reply): IdempotencyRecord {
  const fingerprint = text(fields, 1)
  const attempt = number(fields, 2)
  switch (text(fields, 0)) {
    case 'in-flight':
      return {
        state: 'in-flight',
        fingerprint,
        attempt,
        uncertain: number(fields, 3) === 1,
        leaseRemainingMs: number(fields, 4),
      }
    case 'failed': {
      const uncertain = number(fields, 3) === 1
      return { state: 'failed', fingerprint: uncertain ? fingerprint : null, attempt, uncertain }
    }
    case 'completed':
      return { state: 'completed', fingerprint, attempt, answer: readAnswer(fields) }
    default:
      throw unexpected()
  }
}

function readAnswer(fields: Reply): Answer {
  const body = fields[7]
  if (!Buffer.isBuffer(body)) throw unexpected()
  return {
    status: number(fields, 3),
    statusMessage: text(fields, 4),
    headers: JSON.parse(text(fields, 5)) as Answer['headers'],
    body: number(fields, 6) === 1 ? body : null,
  }
}

function fieldsOf(reply: unknown): Reply {
  if (!Array.isArray(reply)) throw unexpected()
  return reply
}

function text(fields: Reply, index: number): string {
  const field = fields[index]
  if (!Buffer.isBuffer(field)) throw unexpected()
  return field.toString('utf8')
}

function number(fields: Reply, index: number): number {
  const field = fields[index]
  if (typeof field !== 'number') throw unexpected()
  return field
}

function unexpected(): Error {
  return new TypeError(
    'Redis answered in a form that the store does not know. A `sendCommand` must answer with strings as Buffers, and with ' +
      'integers as numbers.',
  )
}
