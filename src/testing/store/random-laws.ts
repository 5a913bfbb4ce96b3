import type { Answer } from '../../core/index.js'
import {
  ANSWER,
  type Command,
  type Event,
  OTHER_ANSWER,
  OTHER_FINGERPRINT,
  PASS,
  Sender,
  type Terms,
} from './history.js'
import { createLaws, type Law } from './play.js'

type Pick = <Value>(...values: readonly Value[]) => Value
type CreateCommand = (sender: Sender, pick: Pick, terms: Partial<Terms>) => Command

/** Of what a history consists, by how often. */
const OWNERS: readonly CreateCommand[] = [
  (sender, _, terms) => sender.begin(terms),
  (sender, _, terms) => sender.begin(terms),
  (sender, _, terms) => sender.begin(terms),
  (sender, _, terms) => sender.renew(terms),
  (sender, _, terms) => sender.release(terms),
  (sender, _, terms) => sender.lose(terms),
  // A completion ends a history until its retention does.
  (sender, pick, terms) =>
    pick(0, 0, 0, 0, 1) ? sender.complete(pick(ANSWER, OTHER_ANSWER), terms) : sender.lose(terms),
]
const STEPS_AND_OPERATORS: readonly CreateCommand[] = [
  createStep,
  createStep,
  (sender) => sender.inspect(),
  (sender, pick) => sender.resolve(pick(1, 2, 3), pick<Answer | null | 'rerun'>(ANSWER, null, 'rerun')),
]

const SENDERS = [
  ...['a', 'b', 'c'].map((name) => new Sender(name)),
  new Sender('d', { unknownOutcome: 'refuse' }),
  new Sender('e', { fingerprint: OTHER_FINGERPRINT }),
]
const SEEDS = [1, 2, 3, 4, 5]
const LENGTH = 80

/** What no table says: long histories of few senders on one key. A seed always makes the same one, so a failure comes again. */
export const randomLaws: readonly Law[] = SEEDS.flatMap((seed) => [
  ...createLaws([], { [`random: a history from seed ${seed} has the machine's replies`]: createHistory(seed, OWNERS) }),
  ...createLaws(['operable', 'stepped'], {
    [`random: a history with steps and operators from seed ${seed} has the machine's replies`]: createHistory(seed, [
      ...OWNERS,
      ...STEPS_AND_OPERATORS,
    ]),
  }),
])

function createHistory(seed: number, kinds: readonly CreateCommand[]): Event[] {
  const pick = createPick(seed)
  return Array.from({ length: LENGTH }, () => {
    // What is short is waited for at once: then a slow machine does not change the history.
    const isShort = pick(...Array.from({ length: 8 }, (_, i) => i === 0))
    const lease = { leaseMs: '1u' } as const
    const short = pick<Partial<Terms>>(lease, lease, lease, { ...lease, retentionMs: '1u', failedMs: '1u' })
    const attempt = pick(1, 2, 3)
    const command = pick(...kinds)(pick(...SENDERS), pick, { attempt, ...(isShort && short) })
    return isShort ? [command, PASS] : [command]
  }).flat()
}

function createStep(sender: Sender, pick: Pick, terms: Partial<Terms>): Command {
  const state = pick('begun', 'done', 'undone')
  return sender.step(pick('charge', 'ship'), state, pick(1, 2, 3, 4), state === 'done' ? pick('1', null) : null, terms)
}

/** Mulberry32: the same numbers for the same seed, everywhere. */
function createPick(seed: number): Pick {
  let state = seed
  return (...values) => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return values[((bits ^ (bits >>> 14)) >>> 0) % values.length] as (typeof values)[number]
  }
}
