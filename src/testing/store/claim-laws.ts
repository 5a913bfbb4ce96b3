import { randomUUID } from 'node:crypto'
import { assertPromise } from '../seen.js'
import {
  COMPLETED,
  corrected,
  createAtOnce,
  createLeap,
  createSenders,
  DAY_MS,
  FAILED,
  FINGERPRINT,
  LAPSE,
  LOST,
  NEARLY,
  next,
  OTHER_ANSWER,
  OTHER_FINGERPRINT,
  owner,
  PASS,
  REST,
  refusing,
  type StoreTrial,
  stranger,
  TAKEN_OVER,
  third,
} from './history.js'
import { createLaws, type Law } from './play.js'

const LATE = [owner.renew(), owner.complete(OTHER_ANSWER), owner.release()]
const CROWD = createAtOnce(...createSenders(50).map((sender) => sender.begin()))

/** Exclusive, and fenced: who owns a key, and who no longer does. */
export const claimLaws: readonly Law[] = createLaws([], {
  'exclusive: of 50 begins at once, one acquires': [CROWD],
  'exclusive: of 50 begins at once after a lapse, one takes over': [...LAPSE, CROWD],
  'exclusive: of 50 begins at once after a failure, one claims': [...FAILED, CROWD],
  'exclusive: a lease holds until its end': [owner.begin({ leaseMs: '4u' }), NEARLY, next.begin()],
  'exclusive: a lease ends by itself': [...TAKEN_OVER],

  'exclusive: a lease of a day lasts a day, and a refused begin gets its remaining time': [
    [owner.begin({ leaseMs: DAY_MS, retentionMs: 2 * DAY_MS }), assertDayLeft, createLeap(DAY_MS - 1), next.begin()],
  ],

  'exclusive: a refused or stale command does not extend the lease': [
    [owner.begin({ leaseMs: '4u' }), NEARLY, next.begin(), stranger.renew(), REST, third.begin()],
  ],

  'exclusive: renew starts the lease anew, as long as it says': [
    [owner.begin({ leaseMs: '1u' }), owner.renew(), PASS],
    [next.begin(), owner.renew({ leaseMs: '1u' }), PASS],
    [third.begin()],
  ],

  'exclusive: the lease of a takeover starts at the takeover': [
    [owner.begin({ leaseMs: 1 }), NEARLY, next.begin({ leaseMs: '2u' }), stranger.renew()],
  ],

  'exclusive: a begin that is sent again starts the lease anew': [
    [owner.begin({ leaseMs: '1u' }), owner.begin(), PASS, next.begin()],
  ],

  'fenced: after a takeover the former owner changes nothing': [...TAKEN_OVER, ...LATE, owner.begin(), next.complete()],

  "fenced: after another's failure the former owner changes nothing": [...TAKEN_OVER, next.release(), ...LATE],

  'fenced: once released, a token neither renews nor completes': [
    [...FAILED, owner.renew(), owner.complete(), corrected.begin(), owner.complete(), owner.release()],
  ],

  "one answer: after another's completion a former owner gets that answer": [...TAKEN_OVER, next.complete(), ...LATE],

  'one answer: of 20 completions at once, one answer is stored and never changes': [
    [owner.begin()],
    [createAtOnce(...Array.from({ length: 20 }, (_, i) => owner.complete({ ...OTHER_ANSWER, status: 201 + i })))],
    [owner.complete(), owner.release(), owner.renew()],
  ],
})

async function assertDayLeft({ store, key }: StoreTrial): Promise<void> {
  const terms = { leaseMs: DAY_MS, retentionMs: DAY_MS, unknownOutcome: 'refuse' } as const
  const begun = await store.begin(key, { token: randomUUID(), scope: 'laws', fingerprint: FINGERPRINT, ...terms })
  const leftMs = !begun.acquired && begun.record.state === 'in-flight' ? begun.record.leaseRemainingMs : 0
  assertPromise(leftMs <= DAY_MS && leftMs > DAY_MS / 2, true, `Most of the day is left; seen: ${leftMs} ms.`)
}

/** Repeatable: a command that is sent twice, or late, has the same effect as one that is sent once, in time. */
export const repeatLaws: readonly Law[] = createLaws([], {
  'repeatable: a begin whose reply was lost gets the same reply again': [owner.begin(), owner.begin(), owner.begin()],

  'repeatable: one begin that is sent 20 times at once gets the same reply each time': [
    [createAtOnce(...Array.from({ length: 20 }, () => owner.begin())), next.begin()],
  ],

  'repeatable: a begin that is sent again after a failure reports the failure again': [
    [...FAILED, next.begin(), next.begin()],
  ],

  'repeatable: a begin that refuses unknown outcomes still finds its own claim': [
    [refusing.begin({ leaseMs: '1u' }), PASS, refusing.begin()],
  ],

  'repeatable: a released token never claims again': [...FAILED, owner.begin(), next.begin()],

  'repeatable: a release whose reply was lost is confirmed again': [...FAILED, owner.release(), owner.lose()],

  'repeatable: the release of an unconfirmed claim, arriving first, fences its begin': [
    [owner.release({ attempt: 0 }), owner.begin(), corrected.begin()],
  ],

  'repeatable: the release of an unconfirmed claim that was made frees the key': [
    [owner.begin(), owner.release({ attempt: 0 }), next.begin()],
  ],

  'repeatable: a restored claim is found by its begin': [owner.renew({ attempt: 4 }), owner.begin(), next.begin()],
})

/** Bound, and fresh means fresh: what a record keeps about earlier attempts. */
export const boundLaws: readonly Law[] = createLaws([], {
  'bound: a command that comes with another fingerprint is not shown the answer': [
    ...COMPLETED,
    // It makes no difference which token is sent, or which command is refused.
    ...[owner.copyWithTerms({ fingerprint: OTHER_FINGERPRINT }), corrected.copyWithTerms({ attempt: 1 })].flatMap(
      (other) => [other.begin(), other.renew(), other.release()],
    ),
    corrected.complete(OTHER_ANSWER, { attempt: 1 }),
  ],

  'bound: a released key may be claimed with another fingerprint': [...FAILED, corrected.begin(), corrected.complete()],

  'bound: a key in flight belongs to its fingerprint, lapsed or not': [...LAPSE, corrected.begin()],

  'bound: an uncertain failure keeps its fingerprint through a takeover and its failure': [
    [...LOST, next.begin(), next.release(), corrected.begin()],
  ],

  'bound: the attempt only grows, through failures, lapses and uncertainty': [
    [
      ...createSenders(2).flatMap((sender) => [sender.begin(), sender.release()]),
      ...LAPSE,
      next.begin(),
      next.release(),
    ],
    [third.begin(), third.complete()],
  ],

  "bound: the attempt is the record's own, whatever its owner says": [
    [third.begin(), third.release(), owner.begin(), owner.renew({ attempt: 9 }), owner.release({ attempt: 0 })],
    [next.begin(), next.complete(undefined, { attempt: 9 })],
  ],

  "bound: the fingerprint is the record's own, whatever its owner says": [
    [owner.begin(), owner.begin({ fingerprint: OTHER_FINGERPRINT })],
    [owner.renew({ fingerprint: OTHER_FINGERPRINT })],
  ],

  'fresh: after certain failures the outcome is failed': createSenders(4).flatMap((sender) => [
    sender.begin(),
    sender.release(),
  ]),

  'fresh: an attempt that stalled leaves the outcome unknown': [...TAKEN_OVER],

  'fresh: uncertain is only ever added: no failing takeover forgets it': [
    [...TAKEN_OVER, next.release({ uncertain: false }), third.begin()],
  ],

  'fresh: a takeover of an uncertain failure stays uncertain when it fails': [
    [...LOST, next.begin(), next.release({ uncertain: false }), third.begin()],
  ],

  'fresh: a renewal does not forget uncertainty': [...TAKEN_OVER, next.renew({ uncertain: false })],

  'fresh: a claim that renew restored as uncertain stays so': [
    [owner.renew({ attempt: 2, uncertain: true }), owner.release({ attempt: 2, uncertain: false }), next.begin()],
  ],

  'fresh: a begin refused for an unknown outcome leaves it to a begin that reruns': [
    [...LAPSE, refusing.begin(), next.begin()],
  ],
})
