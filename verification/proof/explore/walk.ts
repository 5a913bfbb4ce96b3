import type { Findings } from '../layer.js'
import { type Bounds, type Choice, choicesIn, faultsOf, take } from './choices.js'
import { digestOf } from './digest.js'
import { type Entry, lineOf } from './history.js'
import { type Expect, watch } from './invariants.js'
import { emptyLedger } from './ledger.js'
import type { Processes } from './processes.js'
import { resolve } from './resolution.js'
import type { VirtualClock } from './virtual-clock.js'
import { createWorld } from './world.js'

/** Breaks what would never end. */
const MOST_AT_ONCE = 100

/** A state, as the choices that lead to it, and what may happen in it. */
export interface State {
  readonly choices: readonly Choice[]
  readonly depth: number
  readonly faults: number
  readonly from: State | null
  /** What led here from there. */
  readonly taken: readonly Choice[]
}

export interface Step {
  readonly state: State
  readonly digest: string
  /** What happened in this last step. */
  readonly entries: readonly Entry[]
  /** Lets faults stop here and sees whether all comes to an end. The state itself is used up. */
  readonly resolve: (rested: Set<string>) => Promise<void>
}

export interface Way {
  readonly processes: Processes
  readonly clock: VirtualClock
  readonly bounds: Bounds
  readonly findings: Findings
}

/**
 * Takes all choices anew on new engines, since a promise cannot be copied, and then one more. Only what this last one
 * does is checked: the others were, when their states were found.
 */
export async function walk(from: State | null, last: Choice | null, way: Way): Promise<Step> {
  const { processes, clock, bounds, findings } = way
  const story: (Choice | Entry)[] = []
  const ledger = emptyLedger()
  const { policy } = processes
  let isNew = false

  const expect: Expect = (check, holds, what) => {
    if (isNew) findings.expect(check, holds, () => [`${what} (${policy})`, ...story.map(lineIn)].join('\n'))
  }
  const world = createWorld(processes, clock, (entry) => {
    story.push(entry)
    watch(ledger, entry, policy === 'refuse', expect)
  })

  for (const choice of pathTo(from)) {
    story.push(choice)
    await take(choice, world)
  }
  isNew = true
  const known = story.length
  const taken: Choice[] = []
  let faults = from?.faults ?? 0
  let choices = last === null ? choicesIn(world, bounds, 0) : [last]
  // Where there is only one way on, it is no state of its own.
  while (choices.length === 1 && taken.length < MOST_AT_ONCE) {
    const [only] = choices as [Choice]
    faults += faultsOf(only)
    story.push(only)
    await take(only, world)
    taken.push(only)
    choices = choicesIn(world, bounds, faults)
  }
  return {
    state: { choices, faults, from, taken, depth: (from?.depth ?? 0) + taken.length },
    digest: digestOf(world, ledger),
    entries: story.slice(known).filter((each) => 'type' in each),
    resolve: (rested) => resolve(world, ledger, bounds.steps, () => !isAdded(rested, digestOf(world, ledger)), expect),
  }
}

/** Whether it was not there before. */
function isAdded(set: Set<string>, digest: string): boolean {
  const { size } = set
  return set.add(digest).size > size
}

function pathTo(state: State | null): Choice[] {
  const parts: (readonly Choice[])[] = []
  for (let at = state; at !== null; at = at.from) parts.push(at.taken)
  return parts.reverse().flat()
}

function lineIn(step: Choice | Entry): string {
  return 'do' in step ? `- ${Object.values(step).join(' ')}` : lineOf(step)
}
