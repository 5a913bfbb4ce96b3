import { randomUUID } from 'node:crypto'
import type { Answer, Forgetting, IdempotencyRecord, ListedRecords, MaybePromise, Store } from '../core/index.js'
import { Claimant, LONG_MS, type Terms } from './claimant.js'
import { type WholeStore, withCheckedReplies } from './held-store.js'
import { assertPromise, type SeenDone, type SeenRecord, toSeenDone, toSeenRecord } from './seen.js'

export interface Law {
  /** A sentence that begins with the name of its law. */
  readonly name: string
  /**
   * `'operable'`: only for stores with the operator's commands; `'listable'`: only for stores with `list`;
   * `'forgetful'`: only for stores with `forget` and `listScope`; `'stepped'`: only for stores with `step`.
   */
  readonly holds: 'everywhere' | 'operable' | 'listable' | 'forgetful' | 'stepped' | 'operable and stepped'
  readonly check: (bench: Bench) => Promise<void>
}

export function createLawFactory(holds: Law['holds']): (name: string, check: Law['check']) => Law {
  return (name, check) => ({ name, holds, check })
}

export function createLaws(laws: Readonly<Record<string, Law['check']>>): Law[] {
  return Object.entries(laws).map(([name, check]) => createLawFactory('everywhere')(name, check))
}

export const DAY_MS = 86_400_000

interface SeenListed {
  readonly key: string
  readonly record: SeenRecord
  readonly retentionRemainingMs: number
}

/** One store under test, with its own key. */
export interface Bench extends TrialClock {
  readonly store: WholeStore
  /** The key that claimants use by default. */
  readonly key: string
  /** Longer than any test. */
  readonly longMs: number
  /** A claimant with its own token. */
  claimant(terms?: Partial<Terms>): Claimant
  /** The current record, read with a stale command, which changes nothing. There must be one. */
  look(key?: string): Promise<SeenRecord | null>
  inspect(key?: string): Promise<SeenRecord | null>
  /** What a whole walk lists of these keys. */
  list(keys?: readonly string[]): Promise<SeenListed[]>
  /** What a whole walk through the scope of this key lists: of keys that begin with it and a colon. */
  listScope(scope?: string): Promise<SeenListed[]>
  /** Drops the answer of a record, or the record. */
  forget(forgetting: Forgetting, key?: string): Promise<SeenDone>
  /** Resolves an attempt as an operator: `null` means failed. Uses a new token unless `terms` has one. */
  resolve(attempt: number, answer: Answer | null | 'rerun', terms?: Partial<Terms>): Promise<SeenDone>
  /** The record expected for a running attempt. */
  inFlight(owner: Claimant, shows?: { attempt?: number; uncertain?: boolean; lease?: 'live' | 'lapsed' }): SeenRecord
}

export function createBench(opened: Store, advance?: (ms: number) => unknown): Bench {
  const store = withCheckedReplies(opened)
  const key = `laws:${randomUUID()}`
  const claimant = (usual: Partial<Terms> = {}) => new Claimant(store, key, usual)

  return {
    ...trialClock(key, advance),
    store,
    key,
    longMs: LONG_MS,
    claimant,
    async look(at = key) {
      const stranger = claimant({ key: at, attempt: 1 })
      const done = await stranger.renew()
      if (done.ok) assertPromise('no record', 'a record', 'A record is kept until its retention ends.')
      return done.ok ? null : done.record
    },
    async inspect(at = key) {
      const record = await store.inspect(at)
      return record && toSeenRecord(record)
    },
    async list(keys = [key]) {
      const found = await wholeWalk((from) => store.list(from))
      return found.filter(({ key: at }) => keys.includes(at))
    },
    listScope: (scope = key) => wholeWalk((from) => store.listScope(scope, from)),
    forget: async (forgetting, at = key) => toSeenDone(await store.forget(at, forgetting)),
    async resolve(attempt, answer, { key: at = key, token = randomUUID(), retentionMs = 2 * LONG_MS } = {}) {
      const decision = answer === 'rerun' ? { answer: null, rerun: true } : { answer }
      return toSeenDone(await store.resolve(at, { token, attempt, retentionMs, ...decision }))
    },
    inFlight(owner, { attempt = 1, uncertain = false, lease = 'live' } = {}) {
      const { fingerprint } = owner
      const leaseRemainingMs = lease === 'live' ? 1 : 0
      const record: IdempotencyRecord = { state: 'in-flight', fingerprint, attempt, uncertain, leaseRemainingMs }
      return toSeenRecord(record)
    },
  }
}

async function wholeWalk(step: (from: string | null) => MaybePromise<ListedRecords>): Promise<SeenListed[]> {
  const found: SeenListed[] = []
  const begun = new Set<string>()
  for (let from: string | null = null; ; ) {
    const { records, next }: ListedRecords = await step(from)
    for (const { record, ...rest } of records) found.push({ ...rest, record: toSeenRecord(record) })
    if (next === null) return found
    assertPromise(begun.has(next), false, 'A walk ends: no step begins where an earlier one has begun.')
    begun.add(next)
    from = next
  }
}

/** How time passes for one store under test. */
interface TrialClock {
  /** A duration that `pass()` exceeds. */
  readonly shortMs: number
  /** Waits `shortMs`: on the store's clock if it can be advanced, else really. */
  pass(): Promise<void>
  /** Advances the store's clock by `ms`, however long; if it cannot be advanced, really waits `shortMs`. */
  leap(ms: number): Promise<void>
  /** Lets other work run first: with a real clock, one turn of the event loop. */
  turn(): Promise<void>
  /**
   * Runs steps that are only conclusive if less than `ms` have passed. Repeats them with `ms` doubled until they are.
   * `early` waits most of `ms`; `late` waits the rest. `key` is each try's own. The function that the steps resolve with runs once, at the end.
   */
  before(
    steps: (key: string, ms: number, early: Pause, late: Pause) => Promise<() => void | Promise<void>>,
  ): Promise<void>
}

type Pause = () => Promise<void>

const REAL_SHORT_MS = 50
/** Timers fire a little early or late, and the server's clock differs from ours. */
const REAL_MARGIN_MS = 25
/** A store's clock counts whole milliseconds, and is another than ours: so close to the end it may be over there. */
const NEARLY_OVER_MS = 5

function trialClock(key: string, advance: ((ms: number) => unknown) | undefined): TrialClock {
  const shortMs = advance === undefined ? REAL_SHORT_MS : 1_000

  async function passing(ms: number): Promise<void> {
    if (advance === undefined) await new Promise((resolve) => setTimeout(resolve, ms))
    else await advance(ms)
  }

  const pass = () => passing(advance === undefined ? shortMs + REAL_MARGIN_MS : shortMs)

  return {
    shortMs,
    pass,
    leap: (ms) => (advance === undefined ? pass() : passing(ms)),
    async turn() {
      if (advance === undefined) await new Promise((resolve) => setImmediate(resolve))
    },
    async before(steps) {
      for (let ms = advance === undefined ? 200 : 1_000; ; ms *= 2) {
        const startedAt = performance.now()
        const early = () => passing(advance === undefined ? ms * 0.75 : ms - 1)
        const late = () => passing(advance === undefined ? ms * 0.25 + REAL_MARGIN_MS : 1)
        const conclude = await steps(`${key}:${ms}`, ms, early, late)
        if (advance === undefined && performance.now() - startedAt >= ms - NEARLY_OVER_MS) continue
        await conclude()
        return
      }
    },
  }
}
