import type { Failover } from './ground.js'
import type { Command, KeyHistory } from './history.js'
import { instant } from './journal.js'

/** A reply may be on its way when its master dies; no replica is promoted as soon as that. */
const LAST_REPLY_MS = 500
/** A replica that is not held up is never so far behind, even on a busy machine. */
const REPLICATION_MS = 1_000

/**
 * The keys whose last confirmed command a failover forgot. Asynchronous replication promises no more; the evidence is
 * what the replica had when its master was gone.
 */
export function lostRecords(
  histories: readonly KeyHistory[],
  failovers: readonly Failover[],
  leaseMs: number,
): Set<KeyHistory> {
  return new Set(
    histories.filter((history) =>
      failovers.some((failover) => failover.had(history.recordKey) && hasForgotten(failover, history, leaseMs)),
    ),
  )
}

function hasForgotten(
  { diedAt, lagsFrom, kept }: Failover,
  { recordKey, commands }: KeyHistory,
  leaseMs: number,
): boolean {
  const confirmed = commands.filter(
    ({ reply, sentAt, repliedAt }) => isWrite(reply?.outcome) && sentAt < diedAt && repliedAt < diedAt + LAST_REPLY_MS,
  )
  const last = confirmed.reduce<Command | undefined>(
    (latest, each) => (latest === undefined || each.repliedAt > latest.repliedAt ? each : latest),
    undefined,
  )
  // What was confirmed well before had reached the replica: where it is gone, no failover explains it.
  if (last === undefined || last.repliedAt < lagsFrom - REPLICATION_MS) return false
  const record = kept.get(recordKey)
  if (record === undefined) return true
  const isNewer = commands.some(({ token, sentAt }) => sentAt > last.repliedAt && record.includes(token))
  if (!record.includes(last.token)) return !isNewer
  switch (last.command) {
    case 'complete':
      return stateOf(record) !== 'completed'
    case 'release':
      return stateOf(record) === 'in-flight'
    case 'begin':
    case 'renew':
      return stateOf(record) === 'in-flight' && leaseUntil(record) < wallClock(last.sentAt) + leaseMs - 5
  }
}

function isWrite(outcome: string | undefined): boolean {
  return outcome === 'acquired' || outcome === 'ok'
}

/** A record begins with its version and the head of a MessagePack array; its first field is its state. */
function stateOf(record: Buffer): string {
  const length = (record[2] ?? 0) & 0x1f
  return record.toString('latin1', 3, 3 + length)
}

/** The last field of a record in flight, as a MessagePack uint64. */
function leaseUntil(record: Buffer): number {
  return Number(record.readBigUInt64BE(record.length - 8))
}

function wallClock(at: number): number {
  return Date.now() - instant() + at
}
