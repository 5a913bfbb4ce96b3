import type { Failover } from './ground.js'
import type { Command, KeyHistory } from './history.js'
import { instant } from './journal.js'

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
  { diedAt, replicaUntil, lagsFrom, kept }: Failover,
  { recordKey, commands }: KeyHistory,
  leaseMs: number,
): boolean {
  const confirmed = commands.filter(
    // A reply may be on its way when its master dies.
    ({ reply, sentAt, repliedAt }) => isWrite(reply?.outcome) && sentAt < diedAt && repliedAt < replicaUntil,
  )
  const last = confirmed.reduce<Command | undefined>(
    (latest, each) => (latest === undefined || each.repliedAt > latest.repliedAt ? each : latest),
    undefined,
  )
  // What was confirmed well before had reached the replica: where it is gone, no failover explains it.
  if (last === undefined || last.repliedAt < lagsFrom) return false
  const record = kept.get(recordKey)
  if (record === undefined) return true
  if (!record.includes(last.token)) return !isOfLater(record, last, commands)
  switch (last.command) {
    case 'complete':
      return stateOf(record) !== 'completed'
    case 'release':
      return stateOf(record) === 'in-flight'
    case 'begin':
    case 'renew':
    case 'step':
      return stateOf(record) === 'in-flight' && leaseUntil(record) < wallClock(last.sentAt) + leaseMs - 5
  }
}

/** Who claimed before may send more commands, which come to nothing where the replica has what it had missed. */
function isOfLater(record: Buffer, last: Command, commands: readonly Command[]): boolean {
  const owner = commands.find(({ token }) => record.includes(token))
  return owner !== undefined && owner.sentAt > last.repliedAt
}

function isWrite(outcome: string | undefined): boolean {
  return outcome === 'acquired' || outcome === 'ok'
}

/** A record begins with its version and the head of a MessagePack array; its first field is its state. */
function stateOf(record: Buffer): string {
  const length = (record[2] ?? 0) & 0x1f
  return record.toString('latin1', 3, 3 + length)
}

/** The last field of a record in flight before its steps: a MessagePack uint64 behind a boolean, and the only one. */
function leaseUntil(record: Buffer): number {
  return Number(record.readBigUInt64BE(record.toString('latin1').search(BOOLEAN_AND_UINT64) + 2))
}

const BOOLEAN_AND_UINT64 = /[\xc2\xc3]\xcf/

function wallClock(at: number): number {
  return Date.now() - instant() + at
}
