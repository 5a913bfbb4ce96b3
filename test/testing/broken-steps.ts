import { machine, type Store } from 'once-per-key/core'
import { mapStore, type Steps } from '../support/map-store.js'

export interface BrokenStore {
  readonly breaks: string
  /** Names of laws (or their beginnings) that must find it. */
  readonly foundBy: readonly string[]
  /** No other law finds it, but random histories may. */
  readonly alone?: boolean
  /** What each law that finds it says is broken. */
  readonly because?: string
  readonly open: (now: () => number) => Store
}

type StoredRecord = machine.StoredRecord

/** One mistake each in the state machine, of the kind that people make. */
export const BROKEN_STEPS: readonly BrokenStore[] = [
  broken('no fencing', ['fenced: after a takeover', "complete (another's, in-flight, lease live)"], {
    renew: (record, own, now) => machine.renew(record && { ...record, token: own.token }, own, now),
    complete: (record, own, now) => machine.complete(record && { ...record, token: own.token }, own, now),
    release: (record, own, now) => machine.release(record && { ...record, token: own.token }, own, now),
  }),
  broken('a lease never lapses', ['exclusive: a lease ends by itself', 'fresh: an attempt that stalled'], {
    begin: (record, claim, now) => machine.begin(withLease(record, now + 1), claim, now),
  }),
  broken('two owners at once: leases are ignored', ['exclusive: of 50 begins at once, one acquires'], {
    begin: (record, claim, now) => machine.begin(withLease(record, now), claim, now),
  }),
  broken('a lease is counted in the wrong unit', ['exclusive: a lease holds until its end'], {
    begin: (record, claim, now) => machine.begin(record, { ...claim, leaseMs: claim.leaseMs / 10 }, now),
  }),
  broken(
    'the record expires with its lease',
    ['retention: a claim whose owner died', 'fresh: an attempt that stalled'],
    {
      begin: (record, claim, now) => machine.begin(record, { ...claim, retentionMs: claim.leaseMs }, now),
    },
  ),
  broken('the fingerprint is ignored', ['bound: a key in flight', 'bound: an uncertain failure'], {
    begin: (record, claim, now) =>
      machine.begin(record, { ...claim, fingerprint: record?.fingerprint ?? claim.fingerprint }, now),
  }),
  broken('fingerprints are cut', ['bound: a key in flight', 'begin (completed) by another token with another'], {
    begin: (record, claim, now) => {
      const isAlike = record?.fingerprint?.slice(0, 32) === claim.fingerprint.slice(0, 32)
      return machine.begin(isAlike ? withFingerprint(record, claim) : record, claim, now)
    },
  }),
  broken('a renewal is believed about its fingerprint', ["bound: the fingerprint is the record's own"], {
    renew: (record, own, now) => {
      const { record: next, reply } = machine.renew(record, own, now)
      return { record: reply.ok ? withFingerprint(next, own) : next, reply }
    },
  }),
  broken('a failure keeps its fingerprint', ['bound: a released key may be claimed'], {
    begin: (record, claim, now) =>
      record?.state === 'failed' && record.token !== claim.token && claim.fingerprint.endsWith('b')
        ? machine.begin({ ...record, uncertain: true, fingerprint: 'a' }, claim, now)
        : machine.begin(record, claim, now),
  }),
  broken('release forgets the attempt', ['bound: the attempt only grows', 'fresh: after certain failures'], {
    release: (record, own, now) => {
      const { reply } = machine.release(record, own, now)
      return { record: reply.ok ? null : record, reply }
    },
  }),
  broken('a begin that is sent again is refused', ['repeatable: a begin whose reply was lost', 'begin (in-flight'], {
    begin: (record, claim, now) => machine.begin(record && { ...record, token: 'unknown' }, claim, now),
  }),
  broken('a begin that is sent again is a new attempt', ['repeatable: a begin whose reply was lost'], {
    begin: (record, claim, now) => {
      const step = machine.begin(record, claim, now)
      if (!step.reply.acquired || record?.token !== claim.token) return step
      const attempt = step.reply.attempt + 1
      return { record: step.record && { ...step.record, attempt }, reply: { ...step.reply, attempt } }
    },
  }),
  broken("a completion after another's completion is accepted", ["one answer: after another's completion"], {
    complete: (record, own, now) => machine.complete(record?.state === 'completed' ? null : record, own, now),
  }),
  broken('a second completion replaces the first', ['one answer: of 20 completions', 'complete (own, completed)'], {
    complete: (record, own, now) =>
      machine.complete(record?.state === 'completed' && record.token === own.token ? null : record, own, now),
  }),
  broken('a failing takeover forgets the uncertainty', ['fresh: uncertain is only ever added'], {
    release: (record, own, now) => machine.release(certain(record), own, now),
  }),
  broken(
    'a takeover is told that the outcome is known',
    ['fresh: an attempt that stalled', 'begin (in-flight, lease lapsed)'],
    {
      begin: (record, claim, now) => {
        const step = machine.begin(record, claim, now)
        const reply = step.reply.acquired ? { ...step.reply, previousOutcome: 'failed' as const } : step.reply
        return record === null ? step : { record: step.record, reply }
      },
    },
  ),
  broken(
    'unknown outcomes are rerun by those who refuse',
    ['fresh: a begin refused for an unknown outcome', 'begin (failed, uncertain)'],
    {
      begin: (record, claim, now) => machine.begin(record, { ...claim, unknownOutcome: 'rerun' }, now),
    },
  ),
  broken('a released token claims again', ['repeatable: a released token never claims again'], {
    begin: (record, claim, now) =>
      machine.begin(record?.state === 'failed' ? { ...record, token: 'none' } : record, claim, now),
  }),
  broken('no tombstone', ['repeatable: the release of an unconfirmed claim, arriving first', 'release (none)'], {
    release: (record, own, now) =>
      record === null ? { record, reply: { ok: true } } : machine.release(record, own, now),
  }),
  broken('a completion without a record is refused', ['complete (none): ok'], {
    complete: (record, own, now) =>
      record === null ? { record, reply: { ok: false, record: null } } : machine.complete(record, own, now),
  }),
  broken('renew resurrects a completed record', ['renew (own, completed): stale'], {
    renew: (record, own, now) =>
      machine.renew(record?.state === 'completed' && record.token === own.token ? null : record, own, now),
  }),
  broken('renew resurrects a failed record', ['renew (own, failed, certain): stale', 'fenced: once released'], {
    renew: (record, own, now) =>
      machine.renew(record?.state === 'failed' && record.token === own.token ? null : record, own, now),
  }),
  broken('renew changes nothing', ['exclusive: renew starts the lease anew'], {
    renew: (record, own, now) => ({ ...machine.renew(record, own, now), record }),
  }),
  broken('a lapsed owner cannot complete', ['complete (own, in-flight, lease lapsed): ok'], {
    complete: (record, own, now) => {
      const lapsed = record?.state === 'in-flight' && now >= record.leaseUntil
      return machine.complete(lapsed ? { ...record, token: 'none' } : record, own, now)
    },
  }),
  broken('the owner is believed about its attempt', ["bound: the attempt is the record's own"], {
    complete: (record, own, now) =>
      machine.complete(record?.state === 'in-flight' ? { ...record, attempt: own.attempt } : record, own, now),
  }),
  broken('retention is ignored', ['retention: a completed record is gone'], {
    complete: (record, own, now) => machine.complete(record, { ...own, retentionMs: 1e12 }, now),
  }),
  broken('a completion keeps the retention of its claim', ['retention: counts from the completion'], {
    complete: (record, own, now) => {
      const step = machine.complete(record, own, now)
      const expiresAt = record?.expiresAt ?? step.record?.expiresAt ?? 0
      return { ...step, record: step.record && { ...step.record, expiresAt } }
    },
  }),
  broken('a completion that is sent again is kept anew', ['retention: a completion that is sent again'], {
    complete: (record, own, now) => {
      const step = machine.complete(record, own, now)
      return { ...step, record: step.record && { ...step.record, expiresAt: now + own.retentionMs } }
    },
  }),
  broken('failedMs is ignored', ['retention: a certain failure is gone after failedMs'], {
    release: (record, own, now) => machine.release(record, { ...own, failedMs: own.retentionMs }, now),
  }),
  broken('an uncertain failure is kept for failedMs', ['retention: an uncertain failure is kept for its retention'], {
    release: (record, own, now) => machine.release(record, { ...own, retentionMs: own.failedMs }, now),
  }),
  broken('what is unknown is forgotten from the seventh attempt on', ['random: a history'], {
    begin: (record, claim, now) => {
      const step = machine.begin(record, claim, now)
      const isLate = step.reply.acquired && step.reply.attempt >= 7
      return isLate ? { ...step, reply: { ...step.reply, previousOutcome: 'failed' as const } } : step
    },
  }),
  broken('a stale command is not told why', ["renew (another's, completed): stale", 'answer: a stale command'], {
    renew: (record, own, now) => {
      const { record: next, reply } = machine.renew(record, own, now)
      return { record: next, reply: reply.ok ? reply : { ok: false, record: null } }
    },
  }),
]

export function broken(breaks: string, foundBy: readonly string[], steps: Partial<Steps>): BrokenStore {
  return { breaks, foundBy, open: (now) => mapStore(now, { ...machine, ...steps }) }
}

export function alone(store: BrokenStore): BrokenStore {
  return { ...store, alone: true }
}

function withLease(record: StoredRecord | null, leaseUntil: number): StoredRecord | null {
  return record?.state === 'in-flight' ? { ...record, leaseUntil } : record
}

function withFingerprint(record: StoredRecord | null, { fingerprint }: { fingerprint: string }): StoredRecord | null {
  return record && { ...record, fingerprint }
}

function certain(record: StoredRecord | null): StoredRecord | null {
  return record?.state === 'in-flight' ? { ...record, uncertain: false } : record
}
