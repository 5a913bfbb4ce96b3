import {
  type Command,
  corrected,
  createLeap,
  DAY_MS,
  type Event,
  LONG_MS,
  moveToKey,
  NEARLY,
  next,
  OTHER_ANSWER,
  owner,
  PASS,
  REST,
  third,
} from './history.js'
import { createLaws, type Law } from './play.js'

const SHORT = { leaseMs: '1u', retentionMs: '1u' } as const
const MONTH_MS = 30 * DAY_MS
const OF_A_MONTH = { leaseMs: '1u', retentionMs: MONTH_MS, failedMs: MONTH_MS } as const

/** Retention: how long a record is kept, and that it is gone afterwards. */
export const retentionLaws: readonly Law[] = createLaws([], {
  'retention: a completed record is gone when its retention ends': [
    [owner.begin(), owner.complete(undefined, { retentionMs: '1u' }), PASS, corrected.begin()],
  ],

  'retention: a completed record is kept until its retention ends': [
    [owner.begin(), owner.complete(undefined, { retentionMs: '4u' }), NEARLY, next.begin()],
  ],

  'retention: counts from the completion': [
    [owner.begin({ leaseMs: '1u', retentionMs: '2u' }), owner.complete(undefined, { retentionMs: LONG_MS }), PASS],
    [PASS],
    [next.renew()],
  ],

  'retention: a completed record is kept for all of 30 days': [
    [owner.begin(), owner.complete(undefined, { retentionMs: MONTH_MS }), createLeap(29 * DAY_MS), next.begin()],
  ],

  'retention: a completion that is sent again does not extend it': [
    [owner.begin(), owner.complete(undefined, { retentionMs: '4u' }), NEARLY],
    [owner.complete(OTHER_ANSWER, { retentionMs: LONG_MS }), REST],
    [next.begin()],
  ],

  'retention: an uncertain failure is gone when its retention ends': [
    [owner.begin(), owner.lose({ retentionMs: '1u' }), PASS, corrected.begin()],
  ],

  'retention: an uncertain failure is kept for its retention, not for failedMs': [
    [owner.begin(), owner.lose({ failedMs: '1u' }), PASS, next.begin()],
  ],

  'retention: a certain failure is gone after failedMs': [
    [owner.begin(), owner.release({ failedMs: '1u' }), PASS, next.begin()],
  ],

  'retention: a certain failure is kept for failedMs, not for its retention': [
    [owner.begin(), owner.release({ retentionMs: '1u' }), PASS, next.begin()],
  ],

  'retention: a claim behind a certain failure has its own': [
    [owner.begin(), owner.release({ failedMs: '4u' }), NEARLY, next.begin(), REST, third.renew()],
  ],

  'retention: a certain failure is kept until failedMs are over': [
    [owner.begin(), owner.release({ failedMs: '4u' }), NEARLY, owner.begin()],
  ],

  'retention: a claim, and a failure of either kind, is kept for all of 30 days': [
    ...[[], [owner.release(OF_A_MONTH)], [owner.lose(OF_A_MONTH)]].flatMap((end, i) =>
      moveToKey(`:${i}`, [owner.begin(OF_A_MONTH), ...end], ` of ${i}`),
    ),
    createLeap(29 * DAY_MS),
    ...[0, 1, 2].map((i) => next.begin({ key: `:${i}`, leaseMs: '1u' })),
  ],

  'retention: a refused or stale command does not extend a completed record': buildKeptNoLonger(
    owner.complete(undefined, { retentionMs: '4u' }),
  ),
  'retention: a refused or stale command does not extend a claim': buildKeptNoLonger(
    owner.begin({ leaseMs: 1, retentionMs: '4u' }),
    next,
  ),
  'retention: a refused or stale command does not extend a certain failure': buildKeptNoLonger(
    owner.release({ failedMs: '4u' }),
  ),
  'retention: a refused or stale command does not extend an uncertain failure': buildKeptNoLonger(
    owner.lose({ retentionMs: '4u' }),
  ),

  'retention: a claim whose owner died is gone when its retention ends, not with its lease': [
    [owner.begin({ leaseMs: '1u', retentionMs: LONG_MS }), PASS, next.begin(SHORT), PASS, third.begin()],
  ],

  'retention: renew restarts the retention of a claim': [
    [owner.begin({ leaseMs: '1u', retentionMs: '2u' }), owner.renew({ leaseMs: '1u', retentionMs: LONG_MS }), PASS],
    [PASS],
    [next.begin()],
  ],

  'retention: a begin that is sent again restarts the retention': [
    [owner.begin({ leaseMs: '1u', retentionMs: '2u' }), owner.begin({ leaseMs: '1u' }), PASS, PASS, next.begin()],
  ],

  'retention: a release that is sent again does not extend the failure': [
    [owner.begin(), owner.release({ failedMs: '4u' }), NEARLY, owner.release(), REST, next.begin()],
  ],

  'retention: after its end a late completion writes its answer': [owner.begin(SHORT), PASS, owner.complete()],
})

/** The retention starts at the command that last wrote the record, not at the last command that was refused. */
function buildKeptNoLonger(write: Command, refused = owner): Event[] {
  const other = corrected.copyWithTerms({ attempt: 1 })
  const stale = [other.renew(), other.complete(OTHER_ANSWER), other.release()]
  // After a record has ended, its owner's commands are the refused ones; before that, those of others.
  const begin = (refused === owner ? owner : corrected).begin()
  return [owner.begin(), write, NEARLY, ...stale, begin, other.renew(), REST, third.begin()]
}
