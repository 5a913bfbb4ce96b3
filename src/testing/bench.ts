import { randomUUID } from 'node:crypto'
import type {
  Answer,
  CommandReply,
  Forgetting,
  IdempotencyRecord,
  ListedRecords,
  MaybePromise,
  Store,
} from '../core/index.js'
import { type Claimant, claimantOf, LONG_MS, type Terms } from './claimant.js'
import { heldToItsReplies } from './replies.js'
import { promised, type SeenDone, type SeenRecord, seenDone, seenRecord } from './seen.js'
import { type TrialClock, trialClock } from './trial-clock.js'

export const DAY_MS = 86_400_000

/** A record that was listed. */
export interface SeenListed {
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
  /** The record as `inspect` shows it. */
  inspect(key?: string): Promise<SeenRecord | null>
  /** What a whole walk lists of these keys. */
  list(keys?: readonly string[]): Promise<SeenListed[]>
  /** What a whole walk through the scope of this key lists: of keys that begin with it and a colon. */
  listScope(scope?: string): Promise<SeenListed[]>
  /** Drops the answer of a record, or the record. */
  forget(forgetting: Forgetting, key?: string): Promise<SeenDone>
  /** Resolves an attempt as an operator: `null` means failed. Uses a new token unless `terms` has one. */
  resolve(attempt: number, answer: Answer | null, terms?: Partial<Terms>): Promise<SeenDone>
  /** The record expected for a running attempt. */
  inFlight(owner: Claimant, shows?: { attempt?: number; uncertain?: boolean; lease?: 'live' | 'lapsed' }): SeenRecord
}

export function createBench(opened: Store, advance?: (ms: number) => unknown): Bench {
  const store = heldToItsReplies(opened)
  const key = `laws:${randomUUID()}`
  const claimant = (usual: Partial<Terms> = {}) => claimantOf(store, key, usual)

  return {
    ...trialClock(advance),
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
      const list = store.list as NonNullable<Store['list']>
      return (await wholeWalk((from) => list(from))).filter(({ key: at }) => keys.includes(at))
    },
    async listScope(scope = key) {
      promised(typeof store.listScope, 'function', 'A forgetful store has `listScope`.')
      const list = store.listScope as NonNullable<Store['listScope']>
      return wholeWalk((from) => list(scope, from))
    },
    async forget(forgetting, at = key) {
      promised(typeof store.forget, 'function', 'A forgetful store has `forget`.')
      return seenDone((await store.forget?.(at, forgetting)) as CommandReply)
    },
    async resolve(attempt, answer, { key: at = key, token = randomUUID(), retentionMs = 2 * LONG_MS } = {}) {
      promised(typeof store.resolve, 'function', 'An operable store has `resolve`.')
      return seenDone((await store.resolve?.(at, { token, attempt, answer, retentionMs })) as CommandReply)
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
  for (let from: string | null = null; ; ) {
    const { records, next }: ListedRecords = await step(from)
    for (const { record, ...rest } of records) found.push({ ...rest, record: seenRecord(record) })
    if (next === null) return found
    from = next
  }
}
