import { withoutAnswer } from './forget.js'
import { peek, type StoredRecord } from './machine.js'
import type { IdempotencyRecord, ListedRecord } from './record.js'
import { isNotKept } from './record.js'

/**
 * What a store's `listScope` shows of a record: all but its answer, which is shown only if nothing of it is kept. `null`
 * if there is no record.
 */
export function listed(stored: StoredRecord | null, now: number): Omit<ListedRecord, 'key'> | null {
  const { record, reply } = peek(stored, now)
  if (record === null || reply === null) return null
  const isForgotten = record.state === 'completed' && isNotKept(record.answer)
  return { record: isForgotten ? reply : withoutAnswer(reply), retentionRemainingMs: record.expiresAt - now }
}

/**
 * What a store's `list` shows of a record with an unknown outcome; `null` if the outcome is known, or there is no
 * record.
 */
export function listedIfUnknown(stored: StoredRecord | null, now: number): Omit<ListedRecord, 'key'> | null {
  const { record, reply } = peek(stored, now)
  if (record === null || reply === null || !isUnknown(reply)) return null
  return { record: reply, retentionRemainingMs: record.expiresAt - now }
}

function isUnknown(record: IdempotencyRecord): boolean {
  if (record.state === 'in-flight') return record.leaseRemainingMs <= 0
  return record.state === 'failed' && record.uncertain
}
