import { randomUUID } from 'node:crypto'
import type { Answer, Claim, Done, IdempotencyRecord, Own, Store } from '../core/index.js'
import { heldToItsReplies } from './replies.js'
import { eyes, promised, type SeenAnswer, type SeenBegun, type SeenDone, type SeenRecord, seenAnswer } from './seen.js'

export const DAY_MS = 86_400_000

/** One store on trial, with a key of its own. */
export interface Bench {
  readonly store: Store
  /** What the claimants use unless told otherwise. */
  readonly key: string
  /** Outlasts every test. */
  readonly longMs: number
  /** Is over after `pass()`. */
  readonly shortMs: number
  /** Lets `shortMs` pass: on the store's clock if it can be moved, else really. */
  pass(): Promise<void>
  /** Moves the store's clock on by `ms`, however long; where it cannot be moved, lets `shortMs` pass really. */
  leap(ms: number): Promise<void>
  /** Lets other work go first: by a real clock a turn of the event loop. */
  turn(): Promise<void>
  /**
   * Runs steps that only tell something if less than `ms` have passed, as often as it takes, `ms` doubled each time;
   * `early` lets the greater part of `ms` pass, and no more; `late` lets the rest pass. What the steps resolve with runs
   * once, in the end.
   */
  before(steps: (ms: number, early: Pause, late: Pause) => Promise<() => void | Promise<void>>): Promise<void>
  /** Somebody with a token of its own. */
  claimant(terms?: Partial<Terms>): Claimant
  /** The record as it stands, asked for with a stale command: that changes nothing. There must be one. */
  look(key?: string): Promise<SeenRecord | null>
  /** The record as an operator sees it. */
  inspect(key?: string): Promise<SeenRecord | null>
  /** An operator's word on an attempt: `null`, it failed. With a token of its own, unless it is told which. */
  resolve(attempt: number, answer: Answer | null, terms?: Partial<Terms>): Promise<SeenDone>
  /** What a running attempt shows of itself. */
  inFlight(owner: Claimant, shows?: { attempt?: number; uncertain?: boolean; lease?: 'live' | 'lapsed' }): SeenRecord
}

type Pause = () => Promise<void>

export interface Terms {
  readonly key: string
  readonly token: string
  readonly fingerprint: string
  readonly leaseMs: number
  readonly retentionMs: number
  readonly failedMs: number
  readonly unknownOutcome: Claim['unknownOutcome']
  /** What an owner says of itself; unless given, what `begin` told it. */
  readonly attempt: number
  readonly uncertain: boolean
}

export interface Claimant {
  readonly token: string
  readonly fingerprint: string
  begin(terms?: Partial<Terms>): Promise<SeenBegun>
  renew(terms?: Partial<Terms>): Promise<SeenDone>
  complete(answer?: Answer, terms?: Partial<Terms>): Promise<SeenDone>
  release(terms?: Partial<Terms>): Promise<SeenDone>
  /** Claims, which must succeed. */
  claims(terms?: Partial<Terms>): Promise<Claimant>
}

export const FINGERPRINT = 'a'.repeat(64)
export const OTHER_FINGERPRINT = 'b'.repeat(64)

export const ANSWER: Answer = {
  status: 201,
  statusMessage: '',
  headers: [['content-type', 'application/json']],
  body: new TextEncoder().encode('{"id":"payout_1"}'),
}
export const OTHER_ANSWER: Answer = { ...ANSWER, status: 200, body: new TextEncoder().encode('{"id":"payout_2"}') }
export const SEEN_ANSWER: SeenAnswer = seenAnswer(ANSWER)

const REAL_SHORT_MS = 50
/** Timers fire a little early or late, and a server's clock ticks apart from ours. */
const REAL_MARGIN_MS = 25

export function createBench(opened: Store, advance?: (ms: number) => unknown): Bench {
  const store = heldToItsReplies(opened)
  const key = `laws:${randomUUID()}`
  const shortMs = advance === undefined ? REAL_SHORT_MS : 1_000
  const longMs = 3_600_000
  const { seenRecord, seenBegun, seenDone } = eyes(store.effects === 'outside')

  async function passing(ms: number): Promise<void> {
    if (advance === undefined) await new Promise((resolve) => setTimeout(resolve, ms))
    else await advance(ms)
  }

  const pass = () => passing(advance === undefined ? shortMs + REAL_MARGIN_MS : shortMs)

  function claimant(usual: Partial<Terms> = {}): Claimant {
    const token = usual.token ?? randomUUID()
    const fingerprint = usual.fingerprint ?? FINGERPRINT
    const defaults: Terms = {
      key,
      leaseMs: longMs,
      retentionMs: 2 * longMs,
      failedMs: 2 * longMs,
      unknownOutcome: 'rerun',
      attempt: 0,
      uncertain: false,
      ...usual,
      token,
      fingerprint,
    }
    let told = { attempt: defaults.attempt, uncertain: defaults.uncertain }

    const own = (terms: Partial<Terms>): Own & { key: string; leaseMs: number; failedMs: number } => {
      const { key, attempt, uncertain, retentionMs, leaseMs, failedMs } = { ...defaults, ...told, ...terms }
      return { key, token, fingerprint, attempt, uncertain, retentionMs, leaseMs, failedMs }
    }

    async function begin(terms: Partial<Terms> = {}): Promise<SeenBegun> {
      const { key, leaseMs, retentionMs, unknownOutcome } = { ...defaults, ...terms }
      const begun = seenBegun(await store.begin(key, { token, fingerprint, leaseMs, retentionMs, unknownOutcome }))
      if (begun.acquired) told = { attempt: begun.attempt, uncertain: begun.previousOutcome === 'unknown' }
      return begun
    }

    const self: Claimant = {
      token,
      fingerprint,
      begin,
      async renew(terms = {}) {
        const { key, failedMs: _, ...rest } = own(terms)
        return seenDone(await store.renew(key, rest))
      },
      async complete(answer = ANSWER, terms = {}) {
        const { key, failedMs: _, leaseMs: __, ...rest } = own(terms)
        return seenDone(await store.complete(key, { ...rest, answer }))
      },
      async release(terms = {}) {
        const { key, leaseMs: _, ...rest } = own(terms)
        return seenDone(await store.release(key, rest))
      },
      async claims(terms = {}) {
        const { acquired } = await begin(terms)
        promised(acquired, true, 'A key that is free can be claimed.')
        return self
      },
    }
    return self
  }

  return {
    store,
    key,
    longMs,
    shortMs,
    claimant,
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
        const conclude = await steps(ms, early, late)
        if (advance === undefined && performance.now() - startedAt >= ms) continue
        await conclude()
        return
      }
    },
    async look(at = key) {
      const stranger = claimant({ key: at, attempt: 1 })
      const done = await stranger.renew()
      if (done.ok) promised('no record', 'a record', 'A record is kept until its retention ends.')
      return done.ok ? null : done.record
    },
    async inspect(at = key) {
      promised(typeof store.inspect, 'function', 'A store that is operable has `inspect`.')
      const record = (await store.inspect?.(at)) as IdempotencyRecord | null
      return record && seenRecord(record)
    },
    async resolve(attempt, answer, { key: at = key, token = randomUUID(), retentionMs = 2 * longMs } = {}) {
      promised(typeof store.resolve, 'function', 'A store that is operable has `resolve`.')
      return seenDone((await store.resolve?.(at, { token, attempt, answer, retentionMs })) as Done)
    },
    inFlight(owner, { attempt = 1, uncertain = false, lease = 'live' } = {}) {
      const { fingerprint } = owner
      const leaseRemainingMs = lease === 'live' ? 1 : 0
      const record: IdempotencyRecord = { state: 'in-flight', fingerprint, attempt, uncertain, leaseRemainingMs }
      return seenRecord(record)
    },
  }
}
