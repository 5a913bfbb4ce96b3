import { randomUUID } from 'node:crypto'
import { assertPromise } from '../seen.js'
import {
  atOnce,
  corrected,
  crowd,
  DAY_MS,
  FINGERPRINT,
  LAPSE,
  leap,
  NEARLY,
  next,
  OTHER_ANSWER,
  OTHER_FINGERPRINT,
  owner,
  PASS,
  REST,
  refusing,
  stranger,
  third,
} from './history.js'
import { createLaws, type Law, type Play } from './play.js'

const CROWD = atOnce(...crowd(50).map((sender) => sender.begin()))
const RETRIES = crowd(5).map((sender) => sender.begin())

/** Exclusive, and fenced: who owns a key, and who no longer does. */
export const claimLaws: readonly Law[] = createLaws([], {
  'exclusive: of 50 begins at once, one acquires': [CROWD],
  'exclusive: of 50 begins at once after a lapse, one takes over': [...LAPSE, CROWD],
  'exclusive: of 50 begins at once after a failure, one claims': [owner.begin(), owner.release(), CROWD],
  'exclusive: a live lease keeps others out, however often they try': [owner.begin(), ...RETRIES],
  'exclusive: a lease holds until its end': [owner.begin({ leaseMs: '4u' }), NEARLY, next.begin()],
  'exclusive: a lease ends by itself': [...LAPSE, next.begin()],

  'exclusive: a lease of a day lasts a day, and a refused begin gets its remaining time': [
    owner.begin({ leaseMs: DAY_MS, retentionMs: 2 * DAY_MS }),
    assertDayLeft,
    leap(DAY_MS - 1),
    next.begin(),
  ],

  'exclusive: a refused or stale command does not extend the lease': [
    owner.begin({ leaseMs: '4u' }),
    NEARLY,
    next.begin(),
    stranger.renew(),
    REST,
    third.begin(),
  ],

  'exclusive: renew starts the lease anew, as long as it says': [
    owner.begin({ leaseMs: '1u' }),
    owner.renew(),
    PASS,
    next.begin(),
    owner.renew({ leaseMs: '1u' }),
    PASS,
    third.begin(),
  ],

  'exclusive: the lease of a takeover starts at the takeover': [
    owner.begin({ leaseMs: 1 }),
    NEARLY,
    next.begin({ leaseMs: '2u' }),
    stranger.renew(),
  ],

  'exclusive: a begin that is sent again starts the lease anew': [
    owner.begin({ leaseMs: '1u' }),
    owner.begin(),
    PASS,
    next.begin(),
  ],

  'exclusive: the owner can renew a lapsed lease that nobody took over': [
    ...LAPSE,
    owner.renew(),
    next.begin(),
    owner.complete(),
  ],

  'fenced: a command with a token that never claimed changes nothing': [
    owner.begin(),
    stranger.complete(OTHER_ANSWER),
    stranger.release(),
    owner.complete(),
  ],

  'fenced: after a takeover the former owner changes nothing': [
    ...LAPSE,
    next.begin(),
    owner.renew(),
    owner.complete(OTHER_ANSWER),
    owner.release(),
    owner.begin(),
    next.complete(),
  ],

  "fenced: after another's failure the former owner changes nothing": [
    ...LAPSE,
    next.begin(),
    next.release(),
    owner.renew(),
    owner.complete(OTHER_ANSWER),
    owner.release(),
  ],

  'fenced: once released, a token neither renews nor completes': [
    owner.begin(),
    owner.release(),
    owner.renew(),
    owner.complete(),
    corrected.begin(),
    owner.complete(),
    owner.release(),
  ],

  "one answer: after another's completion a former owner gets that answer": [
    ...LAPSE,
    next.begin(),
    next.complete(),
    owner.complete(OTHER_ANSWER),
    owner.release(),
    owner.renew(),
  ],

  'one answer: of 20 completions at once, one answer is stored and never changes': [
    owner.begin(),
    atOnce(...Array.from({ length: 20 }, (_, i) => owner.complete({ ...OTHER_ANSWER, status: 201 + i }))),
    owner.complete(),
    owner.release(),
    owner.renew(),
  ],

  'one answer: each retry gets the answer': [owner.begin(), owner.complete(), ...RETRIES],
})

async function assertDayLeft({ store, key }: Play): Promise<void> {
  const terms = { leaseMs: DAY_MS, retentionMs: DAY_MS, unknownOutcome: 'refuse' } as const
  const begun = await store.begin(key, { token: randomUUID(), scope: 'laws', fingerprint: FINGERPRINT, ...terms })
  const leftMs = !begun.acquired && begun.record.state === 'in-flight' ? begun.record.leaseRemainingMs : 0
  assertPromise(leftMs <= DAY_MS && leftMs > DAY_MS / 2, true, `Most of the day is left; seen: ${leftMs} ms.`)
}

/** Repeatable: a command that is sent twice, or late, has the same effect as one that is sent once, in time. */
export const repeatLaws: readonly Law[] = createLaws([], {
  'repeatable: a begin whose reply was lost gets the same reply again': [owner.begin(), owner.begin(), owner.begin()],

  'repeatable: one begin that is sent 20 times at once gets the same reply each time': [
    atOnce(...Array.from({ length: 20 }, () => owner.begin())),
    next.begin(),
  ],

  'repeatable: a completion whose reply was lost is confirmed again': [
    owner.begin(),
    owner.complete(),
    owner.complete(),
  ],
  'repeatable: a token that completed never claims again': [owner.begin(), owner.complete(), owner.begin()],

  'repeatable: a begin that is sent again after a failure reports the failure again': [
    owner.begin(),
    owner.release(),
    next.begin(),
    next.begin(),
  ],

  'repeatable: a begin that is sent again after a takeover reports the unknown outcome again': [
    ...LAPSE,
    next.begin(),
    next.begin(),
  ],

  'repeatable: a begin that refuses unknown outcomes still finds its own claim': [
    refusing.begin({ leaseMs: '1u' }),
    PASS,
    refusing.begin(),
  ],

  'repeatable: a released token never claims again': [owner.begin(), owner.release(), owner.begin(), next.begin()],

  'repeatable: a release whose reply was lost is confirmed again': [
    owner.begin(),
    owner.release(),
    owner.release(),
    owner.lose(),
  ],

  'repeatable: the release of an unconfirmed claim, arriving first, fences its begin': [
    owner.release({ attempt: 0 }),
    owner.begin(),
    corrected.begin(),
  ],

  'repeatable: the release of an unconfirmed claim that was made frees the key': [
    owner.begin(),
    owner.release({ attempt: 0 }),
    next.begin(),
  ],

  'repeatable: a restored claim is found by its begin': [owner.renew({ attempt: 4 }), owner.begin(), next.begin()],
})

/** Bound, and fresh means fresh: what a record keeps about earlier attempts. */
export const boundLaws: readonly Law[] = createLaws([], {
  'bound: a completed key belongs to its fingerprint': [owner.begin(), owner.complete(), corrected.begin()],

  'bound: a command that comes with another fingerprint is not shown the answer': [
    owner.begin(),
    owner.complete(),
    // It makes no difference which token is sent, or which command is refused.
    ...[owner.with({ fingerprint: OTHER_FINGERPRINT }), corrected.with({ attempt: 1 })].flatMap((other) => [
      other.begin(),
      other.renew(),
      other.release(),
    ]),
    corrected.complete(OTHER_ANSWER, { attempt: 1 }),
  ],

  'bound: a released key may be claimed with another fingerprint': [
    owner.begin(),
    owner.release(),
    corrected.begin(),
    corrected.complete(),
  ],

  'bound: a key in flight belongs to its fingerprint, lapsed or not': [...LAPSE, corrected.begin()],

  'bound: an uncertain failure keeps its fingerprint through a takeover and its failure': [
    owner.begin(),
    owner.lose(),
    next.begin(),
    next.release(),
    corrected.begin(),
  ],

  'bound: the attempt only grows, through failures, lapses and uncertainty': [
    ...crowd(2).flatMap((sender) => [sender.begin(), sender.release()]),
    ...LAPSE,
    next.begin(),
    next.release(),
    third.begin(),
    third.complete(),
  ],

  "bound: the attempt is the record's own, whatever its owner says": [
    third.begin(),
    third.release(),
    owner.begin(),
    owner.renew({ attempt: 9 }),
    owner.release({ attempt: 0 }),
    next.begin(),
    next.complete(undefined, { attempt: 9 }),
  ],

  "bound: the fingerprint is the record's own, whatever its owner says": [
    owner.begin(),
    owner.begin({ fingerprint: OTHER_FINGERPRINT }),
    owner.renew({ fingerprint: OTHER_FINGERPRINT }),
  ],

  'fresh: after certain failures the outcome is failed': crowd(4).flatMap((sender) => [
    sender.begin(),
    sender.release(),
  ]),

  'fresh: an attempt that failed after it may have had an effect leaves the outcome unknown': [
    owner.begin(),
    owner.lose(),
    next.begin(),
  ],

  'fresh: an attempt that stalled leaves the outcome unknown': [...LAPSE, next.begin()],

  'fresh: uncertain is only ever added: no failing takeover forgets it': [
    ...LAPSE,
    next.begin(),
    next.release({ uncertain: false }),
    third.begin(),
  ],

  'fresh: a takeover of an uncertain failure stays uncertain when it fails': [
    owner.begin(),
    owner.lose(),
    next.begin(),
    next.release({ uncertain: false }),
    third.begin(),
  ],

  'fresh: a renewal does not forget uncertainty': [...LAPSE, next.begin(), next.renew({ uncertain: false })],

  'fresh: a lapse without a takeover leaves nothing uncertain if its owner fails for certain': [
    ...LAPSE,
    owner.release(),
    next.begin(),
  ],

  'fresh: a claim that renew restored as uncertain stays so': [
    owner.renew({ attempt: 2, uncertain: true }),
    owner.release({ attempt: 2, uncertain: false }),
    next.begin(),
  ],

  'fresh: a begin refused for an unknown outcome leaves it to a begin that reruns': [
    ...LAPSE,
    refusing.begin(),
    next.begin(),
  ],
})
