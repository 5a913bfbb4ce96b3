import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import {
  type Answer,
  type CommandName,
  type CommandReply,
  type Forgetting,
  faultInReply,
  type IdempotencyRecord,
  type ListedRecords,
  type MaybePromise,
  type OwnersCommand,
  type Store,
} from '../core/index.js'
import { bySend } from './by-send.js'
import { type Claimant, claimantOf, LONG_MS, type Terms } from './claimant.js'
import { broken, inWords, promised, type SeenDone, type SeenRecord, seenDone, seenRecord } from './seen.js'

/** One promise of a store, and its check. */
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

/** Makes laws for such stores. */
export function lawFor(holds: Law['holds']): (name: string, check: Law['check']) => Law {
  return (name, check) => ({ name, holds, check })
}

/** Laws for every store. */
export function everywhere(laws: Readonly<Record<string, Law['check']>>): Law[] {
  return Object.entries(laws).map(([name, check]) => lawFor('everywhere')(name, check))
}

export const DAY_MS = 86_400_000

interface SeenListed {
  readonly key: string
  readonly record: SeenRecord
  readonly retentionRemainingMs: number
}

/** One store under test, with its own key. */
export interface Bench extends TrialClock {
  readonly store: Store
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

export function createBench(opened: Store, advance?: (ms: number) => unknown, sends = false): Bench {
  const store = heldToItsReplies(opened, sends ? bySend(opened) : opened)
  const key = `laws:${randomUUID()}`
  const claimant = (usual: Partial<Terms> = {}) => claimantOf(store, key, usual)

  return {
    ...trialClock(key, advance),
    store,
    key,
    longMs: LONG_MS,
    claimant,
    async look(at = key) {
      const stranger = claimant({ key: at, attempt: 1 })
      const done = await stranger.renew()
      if (done.ok) promised('no record', 'a record', 'A record is kept until its retention ends.')
      return done.ok ? null : done.record
    },
    async inspect(at = key) {
      promised(typeof store.inspect, 'function', 'An operable store has `inspect`.')
      const record = (await store.inspect?.(at)) as IdempotencyRecord | null
      return record && seenRecord(record)
    },
    async list(keys = [key]) {
      promised(typeof store.list, 'function', 'A store that is listable has `list`.')
      const found = await wholeWalk((from) => store.list?.(from) as MaybePromise<ListedRecords>)
      return found.filter(({ key: at }) => keys.includes(at))
    },
    async listScope(scope = key) {
      promised(typeof store.listScope, 'function', 'A forgetful store has `listScope`.')
      return wholeWalk((from) => store.listScope?.(scope, from) as MaybePromise<ListedRecords>)
    },
    async forget(forgetting, at = key) {
      promised(typeof store.forget, 'function', 'A forgetful store has `forget`.')
      return seenDone((await store.forget?.(at, forgetting)) as CommandReply)
    },
    async resolve(attempt, answer, { key: at = key, token = randomUUID(), retentionMs = 2 * LONG_MS } = {}) {
      promised(typeof store.resolve, 'function', 'An operable store has `resolve`.')
      const decision = answer === 'rerun' ? { answer: null, rerun: true } : { answer }
      return seenDone((await store.resolve?.(at, { token, attempt, retentionMs, ...decision })) as CommandReply)
    },
    inFlight(owner, { attempt = 1, uncertain = false, lease = 'live' } = {}) {
      const { fingerprint } = owner
      const leaseRemainingMs = lease === 'live' ? 1 : 0
      const record: IdempotencyRecord = { state: 'in-flight', fingerprint, attempt, uncertain, leaseRemainingMs }
      return seenRecord(record)
    },
  }
}

async function wholeWalk(step: (from: string | null) => MaybePromise<ListedRecords>): Promise<SeenListed[]> {
  const found: SeenListed[] = []
  const begun = new Set<string>()
  for (let from: string | null = null; ; ) {
    const { records, next }: ListedRecords = await step(from)
    for (const { record, ...rest } of records) found.push({ ...rest, record: seenRecord(record) })
    if (next === null) return found
    promised(begun.has(next), false, 'A walk ends: no step begins where an earlier one has begun.')
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

/** Wraps a store so that each reply, in every law, is checked: the engine accepts it, and it contains no token. */
function heldToItsReplies(store: Store, four: Pick<Store, OwnersCommand>): Store {
  const tokens = new Set<string>()

  async function sent<Reply extends object>(
    command: CommandName,
    { token, fingerprint }: { readonly token: string; readonly fingerprint?: string },
    send: () => MaybePromise<Reply>,
  ): Promise<Reply> {
    tokens.add(token)
    return held(command, await send(), fingerprint)
  }

  function held<Reply extends object>(command: CommandName, reply: Reply, fingerprint?: string): Reply {
    const fault = faultInReply(command, reply, fingerprint)
    if (fault !== null) {
      const { member, expected, seen } = fault
      const due = inWords('as the interface says')
      broken(`\`${command}\` replies as the interface says.`, due, reply, [{ member, due: inWords(expected), seen }])
    }
    promised(fieldsMissingIn(reply), [], 'The fields of an answer are own properties, so a copy has all four.')
    const shown = everythingIn(reply)
    const shownTokens = [...tokens].filter((token) => shown.includes(token))
    promised(shownTokens, [], 'The token proves who owns a record: no reply contains it.')
    return reply
  }

  return {
    begin: (key, claim) => sent('begin', claim, () => four.begin(key, claim)),
    renew: (key, own) => sent('renew', own, () => four.renew(key, own)),
    complete: (key, own) => sent('complete', own, () => four.complete(key, own)),
    release: (key, own) => sent('release', own, () => four.release(key, own)),
    ...(store.step && {
      step: (key, own) => sent('step', own, () => store.step?.(key, own) as MaybePromise<CommandReply>),
    }),
    ...(store.inspect && {
      inspect: async (key) =>
        held('inspect', { record: (await store.inspect?.(key)) as IdempotencyRecord | null }).record,
    }),
    ...(store.list && { list: async (from) => held('list', (await store.list?.(from)) as ListedRecords) }),
    ...(store.listScope && {
      listScope: async (scope, from) => held('listScope', (await store.listScope?.(scope, from)) as ListedRecords),
    }),
    ...(store.forget && {
      forget: async (key, forgetting) => held('forget', (await store.forget?.(key, forgetting)) as CommandReply),
    }),
    ...(store.resolve && {
      resolve: (key, resolution) =>
        sent('resolve', resolution, () => store.resolve?.(key, resolution) as MaybePromise<CommandReply>),
    }),
  }
}

const ANSWER_FIELDS = ['status', 'statusMessage', 'headers', 'body']

/** The engine copies an answer with `{ ...answer }`. */
function fieldsMissingIn(reply: object & { readonly record?: IdempotencyRecord | null }): string[] {
  if (reply.record?.state !== 'completed' || reply.record.answer === null) return []
  const own = Object.keys(reply.record.answer)
  return ANSWER_FIELDS.filter((field) => !own.includes(field))
}

function everythingIn(reply: object): string {
  return inspect(reply, { depth: Number.POSITIVE_INFINITY, compact: true })
}
