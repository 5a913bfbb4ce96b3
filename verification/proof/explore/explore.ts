import { Findings, type Layer } from '../layer.js'
import type { Bounds, Choice } from './choices.js'
import { walkEveryRun } from './every-run.js'
import { countIn, noHappenings } from './happenings.js'
import { type Policy, startProcesses } from './processes.js'
import { installVirtualClock } from './virtual-clock.js'
import { type State, type Way, walk } from './walk.js'

const POLICIES = ['rerun', 'refuse'] as const satisfies readonly Policy[]

interface Search extends Bounds {
  readonly policy: Policy
  /** Far more than the library has. A planted fault may make states without an end: with so many, it is found or never is. */
  readonly mostStates: number
}

/**
 * Breadth-first over all that the requests with one key, their processes, the network and the store can do, with so many
 * faults on each path. Nothing is left to chance: the seed changes nothing.
 */
export const explore: Layer = async ({ scale, until, progress }) => {
  const findings = new Findings()
  const happenings = noHappenings()
  const figures = {
    ...{ states: 0, transitions: 0, 'choices in the longest path': 0 },
    'situations of one run, in its machine alone': walkEveryRun(findings),
  }
  const found: Record<string, number> = {}
  let exhausted = 0
  const searches: readonly Search[] = searchesFor(scale).map((search) => ({ steps: 0, ...search }))

  const clock = installVirtualClock()
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0 // Most errors here are time limits that pass, and nobody reads where.
  try {
    for (const [index, search] of searches.entries()) {
      if (findings.hasViolated(until)) break
      const { policy, attempts, faults, steps } = search
      const way = { processes: startProcesses(policy), clock, bounds: search, findings }
      const states = await exploreAll(way, search.mostStates, (share) => progress((index + share) / searches.length))
      const each = steps > 0 ? ` of ${counted(steps, 'step')}` : ''
      found[`states of ${counted(attempts, 'attempt')}${each} with ${counted(faults, 'fault')} (${policy})`] = states
    }
  } finally {
    clock.uninstall()
    Error.stackTraceLimit = stackTraceLimit
  }
  return {
    figures: { ...figures, ...found },
    checked: findings.checked,
    tried: { ...happenings, 'a search of all states': exhausted === searches.length ? 1 : 0 },
    violations: findings.violations,
  }

  async function exploreAll(way: Way, mostStates: number, tell: (share: number) => void): Promise<number> {
    const rested = new Set<string>()
    const fewestFaults = new Map<string, number>()
    let frontier = [(await walk(null, null, way)).state]
    while (frontier.length > 0 && fewestFaults.size < mostStates && !findings.hasViolated(until)) {
      const next: State[] = []
      for (const state of frontier) {
        if (fewestFaults.size >= mostStates) break
        for (const choice of state.choices) next.push(...(await visit(state, choice)))
      }
      frontier = next
      tell(1 - frontier.length / (fewestFaults.size + 1))
    }
    if (frontier.length === 0 && fewestFaults.size < mostStates) exhausted++
    return fewestFaults.size

    /** The state that a choice leads to, unless it was known, with as many faults still to come. */
    async function visit(from: State, choice: Choice): Promise<State[]> {
      figures.transitions++
      const { state, digest, entries, resolve } = await walk(from, choice, way)
      for (const entry of entries) countIn(happenings, entry)
      const known = fewestFaults.get(digest)
      if (known !== undefined && known <= state.faults) return []
      fewestFaults.set(digest, state.faults)
      figures['choices in the longest path'] = Math.max(figures['choices in the longest path'], state.depth)
      if (known === undefined) {
        figures.states++
        await resolve(rested)
      }
      return [state]
    }
  }
}

/** Without steps, unless it says how many. */
type Sought = Omit<Search, 'steps'> & Partial<Pick<Search, 'steps'>>

/**
 * Each search is exhausted. What its faults leave behind is met by two requests more, once they have stopped; the more
 * there are of either, the longer it takes: some tenfold for one more.
 */
function searchesFor(scale: number): readonly Sought[] {
  const both = (bounds: Omit<Sought, 'policy'>) => POLICIES.map((policy) => ({ policy, ...bounds }))
  if (scale < 0.05) {
    return [
      ...both({ attempts: 2, faults: 0, others: true, mostStates: 5_000 }),
      { policy: 'rerun', attempts: 1, faults: 1, others: false, mostStates: 5_000 },
      { policy: 'rerun', attempts: 2, faults: 0, others: false, steps: 2, mostStates: 30_000 },
    ]
  }
  if (scale < 1) {
    return [
      ...both({ attempts: 3, faults: 0, others: true, mostStates: 30_000 }),
      { policy: 'rerun', attempts: 2, faults: 1, others: false, mostStates: 130_000 },
      { policy: 'rerun', attempts: 2, faults: 0, others: false, steps: 2, mostStates: 30_000 },
    ]
  }
  return [
    ...both({ attempts: 3, faults: 0, others: true, mostStates: 30_000 }),
    ...both({ attempts: 2, faults: 1, others: true, mostStates: 350_000 }),
    { policy: 'rerun', attempts: 1, faults: 2, others: false, mostStates: 50_000 },
    { policy: 'rerun', attempts: 2, faults: 0, others: false, steps: 2, mostStates: 30_000 },
    ...(scale >= 3 ? both({ attempts: 2, faults: 2, others: true, mostStates: Number.POSITIVE_INFINITY }) : []),
    ...(scale >= 30 ? both({ attempts: 3, faults: 2, others: true, mostStates: Number.POSITIVE_INFINITY }) : []),
  ]
}

function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}
