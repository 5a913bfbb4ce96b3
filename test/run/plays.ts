import { isDeepStrictEqual } from 'node:util'
import { CertainFailure, type IdempotencyContext } from 'once-per-key/core'
import type { RunnerOptions, runner } from 'once-per-key/run'
import { TIMES } from '../support/engine-on-trial.js'
import { mapStore } from '../support/map-store.js'
import { type Call, type Ending, Expected, type HeldCall, type Outcome } from './expected.js'

type MakeRunner = typeof runner
/** A runner for operations of any input and result. */
type Once = (
  operation: { scope: string; key: string; input: number; signal?: AbortSignal },
  work: (context: IdempotencyContext) => unknown,
) => Promise<unknown>

const ENDINGS: readonly Ending[] = ['returns', 'unkept', 'throws', 'certain', 'judged', 'declared']
const STEPS = 24
/** Records of certain failures live longer than so many leases. */
const MOST_LAPSES = 5

export interface Play {
  /** How many calls had which kind of outcome. */
  readonly tried: Readonly<Record<string, number>>
  /** What was seen, and what was due; `null`: all was as it must be. */
  readonly fault: string | null
}

/** Random operations of three runners on one store, one call after the other, each compared with what SPEC §2 says. */
export async function play(make: MakeRunner, random: () => number): Promise<Play> {
  let nowMs = 1
  const store = mapStore(() => nowMs)
  const options: Omit<RunnerOptions, 'name'> = {
    store,
    ...TIMES,
    isCertainFailure: (error) => (error as { isJudged?: boolean }).isJudged === true,
    onEvent: () => {},
  }
  const runners: Readonly<Record<Call['by'], Once>> = {
    rerunner: make({ ...options, name: 'jobs' }) as unknown as Once,
    refuser: make({ ...options, name: 'jobs', unknownOutcome: 'refuse' }) as unknown as Once,
    stranger: make({ ...options, name: 'mail' }) as unknown as Once,
  }
  const expected = new Expected()
  const tried: Record<string, number> = {}
  const held: { call: HeldCall; end: (ending: Ending) => Promise<Outcome> }[] = []
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item
  let lapses = 0
  let fault: string | null = null

  const compare = (what: string, seen: Outcome, due: Outcome) => {
    const kind = 'code' in due ? due.code : 'told' in due ? `${due.kind}, told ${due.told?.[1]}` : due.kind
    tried[kind] = (tried[kind] ?? 0) + 1
    if (!isDeepStrictEqual(seen, due)) fault ??= `${what}: due ${shown(due)}, seen ${shown(seen)}`
  }

  for (let step = 0; step < STEPS && fault === null; step++) {
    const what = random()
    if (what < 0.15 && lapses < MOST_LAPSES) {
      lapses++
      nowMs += TIMES.leaseMs + 1
      expected.lapse()
    } else if (what < 0.3 && held.length > 0) {
      const [{ call, end }] = held.splice(Math.floor(random() * held.length), 1) as [(typeof held)[number]]
      const ending = pick(ENDINGS)
      compare(`the held call ${shown(call)} ${ending}`, await end(ending), expected.end(call, ending))
    } else {
      const call: Call = {
        by: pick(['rerunner', 'rerunner', 'refuser', 'stranger']),
        scope: pick(['acme', 'acme', 'globex']),
        key: pick(['k', 'k', 'l']),
        input: pick([1, 1, 1, 2]),
        number: step,
        isAborted: random() < 0.05,
      }
      const ending = random() < 0.25 ? 'holds' : pick(ENDINGS)
      const begun = begin(runners[call.by], call)
      const ran = await begun.hasRun
      if (ending === 'holds' && ran) {
        compare(`${shown(call)} holds`, { kind: 'held', told: ran }, expected.begin(call))
        held.push({ call: { ...call, told: ran }, end: begun.end })
      } else {
        const due = expected.begin(call)
        const runs = due.kind === 'held' && ending !== 'holds'
        const seen = ran && ending !== 'holds' ? await begun.end(ending) : await begun.outcome
        compare(`${shown(call)} ${ending}`, seen, runs ? expected.end({ ...call, told: due.told }, ending) : due)
      }
    }
  }
  await Promise.all(held.map(({ end }) => end('returns')))
  return { tried, fault }
}

/** Starts a call, whose function waits until it is told how to end. */
function begin(once: Once, { scope, key, input, number, isAborted }: Call) {
  let told: readonly [number, string] | null = null
  let ran!: (told: readonly [number, string] | null) => void
  const hasRun = new Promise<readonly [number, string] | null>((resolve) => {
    ran = resolve
  })
  let finish!: (ending: Ending) => void
  const ending = new Promise<Ending>((resolve) => {
    finish = resolve
  })
  const thrown = { error: undefined as Error | undefined }
  const signal = isAborted ? { signal: AbortSignal.abort(new Error('aborted')) } : {}
  const outcome = once({ scope, key, input, ...signal }, async (context) => {
    told = [context.attempt, context.previousOutcome]
    ran(told)
    return endAs(await ending, context, number, thrown)
  }).then(
    (value): Outcome => ({ kind: 'result', value: asPlain(value), ...(told && { told }) }),
    (error: Error & { code?: string }): Outcome => {
      const isOwn = thrown.error !== undefined && error === thrown.error
      if (isOwn || error.message === 'aborted') return { kind: 'thrown', ...(told && { told }) }
      return { kind: 'refused', code: error.code ?? String(error), ...(told && { told }) }
    },
  )
  void outcome.then(() => ran(null))
  const end = (how: Ending) => {
    finish(how)
    return outcome
  }
  return { hasRun, outcome, end }
}

function endAs(ending: Ending, context: IdempotencyContext, number: number, thrown: { error: Error | undefined }) {
  if (ending === 'returns') return { number, isGone: undefined }
  if (ending === 'unkept') return new Map([[number, number]])
  if (ending === 'declared') context.mayHaveEffect()
  const error = ending === 'throws' || ending === 'judged' ? new Error(ending) : new CertainFailure(ending)
  thrown.error = Object.assign(error, { isJudged: ending === 'judged' })
  throw error
}

/** What is compared must be a plain value; a member that is `undefined` counts. */
function asPlain(value: unknown): unknown {
  return value instanceof Map ? [...value.keys()] : value
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, member) => (member === undefined ? 'undefined' : member))
}
