import { Buffer } from 'node:buffer'
import {
  ALL_BYTES,
  ANSWER,
  COMPLETED,
  type Event,
  moveToKey,
  next,
  operator,
  owner,
  PASS,
  stranger,
  TAKEN_OVER,
} from './history.js'
import { createLaws, type Law } from './play.js'

const CHARGED = owner.step('charge', 'done', 2, '"ch_1"')
const CHARGE = [owner.step('charge', 'begun', 1), CHARGED]
const EVERY_BYTE = Buffer.from(ALL_BYTES).toString('latin1')

const MANY = ['l'.repeat(99), '__proto__', 'charge', 'Charge', '1', '01', 'e\u0301', '\u00e9'].concat(
  Array.from({ length: 92 }, (_, i) => `${'l'.repeat(96)}:${i + 100}`),
)

export const stepLaws: readonly Law[] = createLaws(['stepped'], {
  'steps: a takeover is told those that were recorded, with their results': [
    [owner.begin(), ...CHARGE, owner.step('ship', 'begun', 3, null, { leaseMs: '1u' }), PASS, next.begin()],
  ],

  'steps: a begin that is sent again is told them too': [owner.begin(), ...CHARGE, owner.begin()],

  'steps: an uncertain failure keeps them, a certain one and a completion drop them': [
    ...[owner.lose(), owner.release(), owner.complete(ANSWER, { retentionMs: '1u' })].flatMap((end, i) =>
      moveToKey(`:${i}`, [owner.begin(), ...CHARGE, end], ` of ${i}`),
    ),
    PASS,
    ...[0, 1, 2].map((i) => next.begin({ key: `:${i}` })),
  ],

  'steps: what was taken back has never begun, for the next attempt': [
    [owner.begin(), owner.step('charge', 'begun', 1), owner.step('charge', 'undone', 2), owner.lose(), next.begin()],
  ],

  'steps: a late command of one owner changes nothing': [
    [owner.begin(), owner.step('charge', 'begun', 1), owner.step('charge', 'begun', 3)],
    [owner.step('charge', 'undone', 2), owner.begin(), owner.step('charge', 'undone', 5)],
    [owner.step('charge', 'begun', 4), owner.begin(), owner.step('charge', 'done', 7, '"ch_1"')],
    [owner.step('charge', 'begun', 6), owner.begin()],
  ],

  'steps: a result is final': [
    [owner.begin(), ...CHARGE, owner.lose(), next.begin(), next.step('charge', 'begun', 1), next.begin()],
    [next.step('charge', 'undone', 1), next.begin(), next.step('charge', 'done', 2, '"ch_2"'), next.begin()],
  ],

  'steps: the order starts anew with each owner': [
    owner.begin(),
    owner.step('charge', 'begun', 9),
    owner.lose(),
    next.begin(),
    next.step('charge', 'done', 1, '"ch_1"'),
    next.begin(),
    next.step('ship', 'begun', 5),
    next.lose(),
    // So it does where the same token comes back.
    owner.begin(),
    owner.lose(),
    next.begin(),
    next.step('ship', 'undone', 1),
    next.begin(),
  ],

  'steps: a command that is sent again equals one': [owner.begin(), ...CHARGE, CHARGED, owner.begin()],

  'steps: an owner that was taken over records none': [
    [...TAKEN_OVER, owner.step('charge', 'done', 1, '"ch_late"'), next.begin()],
  ],

  'steps: behind an uncertain failure each is stale': buildLateSteps(owner.lose()),
  'steps: behind a certain failure each is stale': buildLateSteps(owner.release()),

  'steps: behind a completion a result is confirmed, and a beginning is stale': [
    [...COMPLETED, stranger.step('charge', 'done', 1, '"ch_2"'), CHARGED, owner.step('ship', 'begun', 3)],
  ],

  'steps: it renews the lease, and restarts the retention': [
    [owner.begin({ leaseMs: '1u', retentionMs: '2u' }), owner.step('charge', 'begun', 1), PASS, PASS, next.begin()],
  ],

  'steps: where there is no record, the claim is restored with it, and its owner is told': [
    [owner.step('charge', 'begun', 1, null, { attempt: 2, uncertain: true }), owner.begin()],
  ],

  'steps: a renewal that restores the claim says so, and another does not': [
    [owner.renew({ attempt: 2 }), owner.renew({ attempt: 2 })],
  ],

  'steps: after its retention a record is none, for a step too': [
    [owner.begin({ leaseMs: '1u', retentionMs: '1u' }), PASS, next.step('charge', 'begun', 1, null, { attempt: 1 })],
  ],

  'steps: any bytes and any label survive, and a result that is not kept': [
    [owner.begin(), owner.step('Zahlung é 💶 "1" \\', 'done', 1, EVERY_BYTE), owner.step('large', 'done', 2, null)],
    [owner.step('empty', 'done', 3, ''), owner.begin()],
  ],

  'steps: a hundred survive, each under its own label, and a result of 64 KiB': [
    owner.begin(),
    ...MANY.map((label, i) => {
      return owner.step(label, 'done', i + 1, i === 0 ? 'large '.repeat(10_000).padEnd(65_536, '.') : `${i}`)
    }),
    owner.begin(),
  ],
})

function buildLateSteps(end: Event): Event[] {
  const late = (['begun', 'done', 'undone'] as const).map((state) => owner.step('ship', state, 1))
  return [owner.begin(), end, ...late, next.begin()]
}

const LOST_WITH_STEPS = [
  owner.begin(),
  owner.step('charge', 'done', 1, '"ch_1"'),
  owner.step('ship', 'begun', 2),
  owner.lose(),
]

/** What an operator sees of steps, and what a resolution leaves of them. */
export const operatorStepLaws: readonly Law[] = createLaws(['operable', 'stepped'], {
  'resolve: to be rerun keeps the steps': [...LOST_WITH_STEPS, operator.resolve(1, 'rerun'), next.begin()],
  'resolve: as failed drops the steps': [
    [...LOST_WITH_STEPS, operator.resolve(1, null), operator.inspect(), next.begin()],
  ],
  'resolve: as completed drops the steps': [...LOST_WITH_STEPS, operator.resolve(1, ANSWER), operator.inspect()],

  'inspect: shows the labels and states of steps, and no result': [
    [owner.begin(), owner.step('charge', 'done', 1, '"ch_1"'), owner.step('ship', 'begun', 2)],
    [owner.step('mail', 'undone', 3), operator.inspect(), owner.lose(), operator.inspect()],
  ],
})
