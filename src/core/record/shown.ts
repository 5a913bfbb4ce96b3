import { type Change, peek, type StoredRecord } from './machine.js'
import {
  type CommandReply,
  type Forgetting,
  type IdempotencyRecord,
  isNotKept,
  type ListedRecord,
  NOT_KEPT,
} from './record.js'

/**
 * What a store's `listScope` shows of a record: all but its answer, which is shown only if nothing of it is kept. `null`
 * if there is no record.
 */
export function toListedRecord(stored: StoredRecord | null, now: number): Omit<ListedRecord, 'key'> | null {
  const { record, reply } = peek(stored, now)
  if (record === null || reply === null) return null
  const isForgotten = record.state === 'completed' && isNotKept(record.answer)
  return { record: isForgotten ? reply : omitAnswer(reply), retentionRemainingMs: record.expiresAt - now }
}

/**
 * What a store's `list` shows of a record with an unknown outcome; `null` if the outcome is known, or there is no
 * record.
 */
export function toListedRecordIfUnknown(stored: StoredRecord | null, now: number): Omit<ListedRecord, 'key'> | null {
  const { record, reply } = peek(stored, now)
  if (record === null || reply === null || !isUnknown(reply)) return null
  return { record: reply, retentionRemainingMs: record.expiresAt - now }
}

function isUnknown(record: IdempotencyRecord): boolean {
  if (record.state === 'in-flight') return record.leaseRemainingMs <= 0
  return record.state === 'failed' && record.uncertain
}

export function forget(stored: StoredRecord | null, forgetting: Forgetting, now: number): Change<CommandReply> {
  const { record, reply: seen } = peek(stored, now)
  if (record === null || seen === null) return { record: null, reply: { ok: false, record: null } }
  if (!isSame(record, forgetting) || isOpen(record)) {
    return { record, reply: { ok: false, record: omitAnswer(seen) } }
  }
  if (forgetting.removes) return { record: null, reply: OK }
  if (record.state !== 'completed') return { record, reply: OK }
  const { state, token, attempt, expiresAt } = record
  return { record: { state, token, fingerprint: record.fingerprint, attempt, answer: NOT_KEPT, expiresAt }, reply: OK }
}

const OK: CommandReply = Object.freeze({ ok: true })

function isSame(record: StoredRecord, { state, attempt, fingerprint }: Forgetting): boolean {
  return record.state === state && record.attempt === attempt && record.fingerprint === fingerprint
}

/** It runs, or its outcome is unknown. */
export function isOpen(record: StoredRecord | IdempotencyRecord): boolean {
  return record.state === 'in-flight' || (record.state === 'failed' && record.uncertain)
}

/** `answer: null`: not shown. */
function omitAnswer(record: IdempotencyRecord): IdempotencyRecord {
  return record.state === 'completed' ? { ...record, answer: null } : record
}
