import {
  next as another,
  type Command,
  type ConcurrentCommands,
  type Event,
  FINGERPRINT,
  owner as first,
  moveToKey,
  OTHER_ANSWER,
  operator,
  PASS,
} from './history.js'
import { createLaws, type Law } from './play.js'

const owner = first.copyWithTerms({ attempt: 1 })
const next = another.copyWithTerms({ attempt: 0 })

const COMMANDS = {
  renew: owner.renew(),
  complete: owner.complete(),
  release: owner.release(),
  'release as uncertain': owner.lose(),
  step: owner.step('charge', 'done', 2, '"ch_1"'),
  'another step': owner.step('ship', 'begun', 3),
  'begin again': owner.begin(),
  "another's begin": next.begin(),
  "another's renew": next.renew(),
  "another's complete": next.complete(OTHER_ANSWER),
  "another's release": next.release(),
  inspect: operator.inspect(),
  forget: operator.forget({ fingerprint: FINGERPRINT }),
  'forget, removing': operator.forget({ state: 'failed', fingerprint: null, removes: true }),
  'resolve as failed': operator.resolve(1, null),
  'resolve as completed': operator.resolve(1, OTHER_ANSWER),
} satisfies Record<string, Command>

type Name = keyof typeof COMMANDS

const FROM_ATTEMPTS = ['renew', 'complete', 'release', 'begin again', "another's begin"] as const

const SITUATIONS = {
  none: [],
  'in-flight, lease live': [owner.begin()],
  'in-flight, lease lapsed': [owner.begin({ leaseMs: '1u' })],
  expired: [owner.begin({ leaseMs: '1u', retentionMs: '1u' })],
  completed: [owner.begin(), owner.complete()],
  'failed, certain': [owner.begin(), owner.release()],
  'failed, uncertain': [owner.begin(), owner.lose()],
} satisfies Record<string, readonly Event[]>

const RACES: readonly [situation: keyof typeof SITUATIONS, one: Name, others: readonly Name[]][] = [
  ['none', "another's begin", ['renew', 'complete', 'release']],
  ['in-flight, lease live', 'renew', ['complete', 'release']],
  ['in-flight, lease live', 'release', ['complete', "another's begin"]],
  ['in-flight, lease live', 'begin again', ['complete', 'release']],
  ['in-flight, lease lapsed', "another's begin", ['renew', 'complete', 'release', 'begin again']],
  ['in-flight, lease lapsed', 'resolve as failed', FROM_ATTEMPTS],
  ['in-flight, lease lapsed', 'resolve as completed', FROM_ATTEMPTS],
  ['expired', "another's begin", ['renew', 'complete', 'release', 'begin again']],
  ['failed, certain', 'release', ["another's begin"]],
  ['failed, uncertain', 'release', ["another's begin"]],
  // A stale command, and a command that only reads, must not write back what it has read.
  ['in-flight, lease live', "another's renew", ['complete', 'release']],
  ['in-flight, lease live', "another's complete", ['complete', 'release']],
  ['in-flight, lease live', "another's release", ['complete', 'release']],
  ['in-flight, lease live', 'inspect', ['complete', 'release']],
  ['in-flight, lease live', 'forget', ['complete', 'release']],
  ['completed', 'forget', ['complete']],
  ['failed, certain', 'forget, removing', ["another's begin"]],
  ['none', "another's begin", ['step']],
  ['in-flight, lease live', 'step', ['another step', 'renew', 'complete', 'release as uncertain', 'begin again']],
  ['in-flight, lease lapsed', "another's begin", ['step']],
  ['failed, uncertain', 'resolve as failed', ["another's begin"]],
  ['failed, uncertain', 'resolve as completed', ["another's begin"]],
]

/** Who owns the record, and what the next claim replies. */
const AFTERWARDS = [owner.renew(), next.renew(), owner.begin(), next.begin()]

const LAGS = [
  ...Array.from({ length: 5 }, (_, ticks) => ({ ticks, turns: 0 })),
  ...[1, 3].map((turns) => ({ ticks: 0, turns })),
]

/** Each command is one atomic step: two commands sent at once have the same result as in one of the two orders. */
export const raceLaws: readonly Law[] = RACES.flatMap(([situation, one, others]) =>
  others.flatMap((other) => {
    const name = `atomic (${situation}): ${one} and ${other} at once have the result of one order`
    const waits = situation === 'in-flight, lease lapsed' || situation === 'expired' ? [PASS] : []
    const races = LAGS.flatMap((lag) => [createRace(one, other, lag), createRace(other, one, lag)])
    const playOnEach = (history: readonly Event[], i: number) => moveToKey(`:${i}`, history, ` of ${i}`)
    return createLaws(findNeeds([one, other]), {
      [name]: [
        ...races.flatMap((_, i) => playOnEach(SITUATIONS[situation], i)),
        ...waits,
        ...races.flatMap((race, i) => [
          { ...race, commands: playOnEach(race.commands, i) as Command[] },
          ...playOnEach(AFTERWARDS, i),
        ]),
      ],
    })
  }),
)

/** The second command comes a little later: when two commands overlap depends on the store. */
function createRace(one: Name, other: Name, { ticks, turns }: (typeof LAGS)[number]): ConcurrentCommands {
  const commands = [COMMANDS[one], COMMANDS[other]]
  return {
    type: 'at once',
    commands,
    async delay(place, turn) {
      if (place === 0) return
      for (let i = 0; i < ticks; i++) await null
      for (let i = 0; i < turns; i++) await turn()
    },
  }
}

function findNeeds(names: readonly Name[]): Law['needs'] {
  if (names.includes('step')) return ['stepped']
  if (names[0]?.startsWith('forget')) return ['forgetful']
  return /^(resolve|inspect)/.test(names[0] ?? '') ? ['operable'] : []
}
