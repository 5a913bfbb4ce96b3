import { type BeginReply, machine } from 'once-per-key/core'
import { mapStore } from '../support/map-store.js'
import { alone, type BrokenStore, broken } from './broken-steps.js'

type StoredRecord = machine.StoredRecord

const MAX_TIMER_MS = 2 ** 31 - 1
const DAYS = ['retention: a completed record is kept for all', 'retention: a claim, and a failure of either kind']
const NO_LONGER = ['a completed record', 'a claim', 'a certain failure', 'an uncertain failure'].map(
  (what) => `retention: a refused or stale command does not extend ${what}`,
)

/** One mistake each in how long a lease or a record is there. */
export const BROKEN_TIMES: readonly BrokenStore[] = [
  found('a lease is a minute at most', ['exclusive: a lease of a day'], {
    begin: (record, claim, now) => machine.begin(record, { ...claim, leaseMs: Math.min(claim.leaseMs, 60_000) }, now),
  }),
  {
    breaks: 'a lease is a minute at most, whatever is told of it',
    foundBy: ['exclusive: a lease of a day'],
    alone: true,
    open(now) {
      const claimedAt = new Map<string, number>()
      const begin: typeof machine.begin = (record, claim, at) => {
        claimedAt.set(claim.token, at)
        const isOver = record !== null && at - (claimedAt.get(record.token) ?? at) >= 60_000
        return machine.begin(isOver ? withLease(record, at) : record, claim, at)
      }
      return mapStore(now, { ...machine, begin })
    },
  },
  found('the lease that is left is told in seconds', ['exclusive: a lease of a day'], {
    begin: (record, claim, now) => inSeconds(machine.begin(record, claim, now)),
  }),
  found('the lease of a takeover starts where the one before it has ended', ['exclusive: the lease of a takeover'], {
    begin: (record, claim, now) => {
      const step = machine.begin(record, claim, now)
      const isOver = record?.state === 'in-flight' && record.token !== claim.token && step.reply.acquired
      return isOver ? { ...step, record: withLease(step.record, record.leaseUntil + claim.leaseMs) } : step
    },
  }),
  found('a claim is kept as long as the failure before it', ['retention: a claim behind a certain failure'], {
    begin: (record, claim, now) => {
      const step = machine.begin(record, claim, now)
      const isNext = record?.state === 'failed' && !record.uncertain && now < record.expiresAt && step.reply.acquired
      return isNext ? { ...step, record: keptAnew(step.record, record.expiresAt) } : step
    },
  }),
  found('a refused begin starts the lease anew', ['exclusive: a refused or stale command does not extend the lease'], {
    begin: (record, claim, now) => {
      const step = machine.begin(record, claim, now)
      const isLive = record?.state === 'in-flight' && now < record.leaseUntil
      return step.reply.acquired || !isLive ? step : { ...step, record: withLease(record, now + claim.leaseMs) }
    },
  }),
  found('a refused begin keeps the record longer', NO_LONGER, {
    begin: (record, claim, now) => {
      const step = machine.begin(record, claim, now)
      return step.reply.acquired ? step : { ...step, record: keptAnew(step.record, now + claim.retentionMs) }
    },
  }),
  found('a stale command keeps the record longer', NO_LONGER, {
    release: (record, own, now) => {
      const step = machine.release(record, own, now)
      return step.reply.ok ? step : { ...step, record: keptAnew(step.record, now + own.retentionMs) }
    },
  }),
  found('a completed record is kept for 2 ** 31 milliseconds at most', DAYS.slice(0, 1), {
    complete: (record, own, now) => machine.complete(record, withTimer(own), now),
  }),
  found('a completed record is kept for so long that it is gone at once', DAYS.slice(0, 1), {
    complete: (record, own, now) => machine.complete(record, { ...own, retentionMs: own.retentionMs | 0 }, now),
  }),
  found('a claim is kept for 2 ** 31 milliseconds at most', DAYS.slice(1), {
    begin: (record, claim, now) => machine.begin(record, withTimer(claim), now),
  }),
  found('a failure is kept for 2 ** 31 milliseconds at most', DAYS.slice(1), {
    release: (record, own, now) => machine.release(record, withTimer(own), now),
  }),
]

function found(breaks: string, foundBy: readonly string[], steps: Parameters<typeof broken>[2]): BrokenStore {
  return alone(broken(breaks, foundBy, steps))
}

function withTimer<Terms extends { retentionMs: number; failedMs?: number }>(terms: Terms): Terms {
  const { retentionMs, failedMs = 0 } = terms
  return { ...terms, retentionMs: Math.min(retentionMs, MAX_TIMER_MS), failedMs: Math.min(failedMs, MAX_TIMER_MS) }
}

function withLease(record: StoredRecord | null, leaseUntil: number): StoredRecord | null {
  return record?.state === 'in-flight' ? { ...record, leaseUntil } : record
}

function keptAnew(record: StoredRecord | null, expiresAt: number): StoredRecord | null {
  return record && { ...record, expiresAt }
}

function inSeconds(step: machine.Change<BeginReply>): machine.Change<BeginReply> {
  const { reply } = step
  if (reply.acquired || reply.record.state !== 'in-flight') return step
  const leaseRemainingMs = reply.record.leaseRemainingMs / 1_000
  return { ...step, reply: { ...reply, record: { ...reply.record, leaseRemainingMs } } }
}
