/**
 * What `forget` does to a record: an operator drops the answer, or the whole record. Of an operation that runs, or whose
 * outcome is unknown, nothing is forgotten. The first rule that fits.
 *
 * | record                                                             | `forget`                                   |
 * |--------------------------------------------------------------------|--------------------------------------------|
 * | none                                                               | stale                                      |
 * | another state, attempt or fingerprint than was looked at           | stale                                      |
 * | in-flight; or failed and uncertain                                 | stale                                      |
 * | completed, or failed and certain; `removes`                        | ok: there is no record, and the key is new |
 * | completed                                                          | its answer is not kept; all else stays     |
 * | failed, certain                                                    | ok, no change: it has no answer            |
 *
 * A stale reply shows the record without its answer.
 */
import { type Change, peek, type StoredRecord } from './machine.js'
import type { CommandReply, Forgetting, IdempotencyRecord } from './record.js'
import { NOT_KEPT } from './record.js'

export function forget(stored: StoredRecord | null, forgetting: Forgetting, now: number): Change<CommandReply> {
  const { record, reply: seen } = peek(stored, now)
  if (record === null || seen === null) return { record: null, reply: { ok: false, record: null } }
  if (!isSame(record, forgetting) || isOpen(record)) {
    return { record, reply: { ok: false, record: withoutAnswer(seen) } }
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
export function withoutAnswer(record: IdempotencyRecord): IdempotencyRecord {
  return record.state === 'completed' ? { ...record, answer: null } : record
}
