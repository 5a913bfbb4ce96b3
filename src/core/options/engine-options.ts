import type { EngineEvent } from '../events/events.js'
import type { Answer } from '../record/record.js'
import type { Store } from '../store.js'

/** The options of an engine, which runs an operation once. All durations are integers, in milliseconds. */
export interface EngineOptions {
  /** Where records are kept, such as `new MemoryStore()` for one process. */
  readonly store: Store

  /**
   * How long an owner may be silent before another may take over. Renewed while the handler runs, so it does not bound
   * the handler. At least 4 × `storeTimeoutMs`.
   * @default 30_000: a crash blocks the key for half a minute; a garbage collection costs nothing
   */
  readonly leaseMs?: number | undefined

  /**
   * How long the lease is renewed if a handler does not end. At least `leaseMs`.
   * @default 900_000 (15 minutes): longer than any proxy keeps a request open
   */
  readonly maxRunMs?: number | undefined

  /**
   * How long a completed record is kept. At least `maxRunMs + leaseMs`.
   * @default 86_400_000 (24 hours): common among payment APIs
   */
  readonly retentionMs?: number | undefined

  /**
   * How long a record with an unknown outcome is kept. After it the key is new: a retry runs with `previousOutcome:
   * 'none'`. At least `maxRunMs + leaseMs`.
   * @default 86_400_000 (24 hours), or the value of `retentionMs`
   */
  readonly unknownRetentionMs?: number | undefined

  /**
   * How far the clock behind `firstSent` may differ from this machine's: an operation is refused with `key_expired`
   * once it is older than the smaller of `retentionMs` and `unknownRetentionMs`, less this. Less than both of them.
   * @default 300_000 (5 minutes): as for signatures with a timestamp
   */
  readonly clockSkewMs?: number | undefined

  /**
   * How long a duplicate waits for the owner's answer before it is refused with `in_flight`. At most `maxRunMs`. At
   * most 1,000 duplicates wait at a time, and a scope takes at most as many places as are still free.
   * @default 0: a waiting request holds a connection, and the client can wait instead
   */
  readonly inFlightWaitMs?: number | undefined

  /**
   * `Retry-After` of `store_unavailable`, and at first of `in_flight`, rounded up to seconds. That of `in_flight` grows
   * to 8 s as the owner's lease passes; after a missed renewal it is the rest of the lease.
   * @default 1_000: most handlers have ended by then
   */
  readonly retryAfterMs?: number | undefined

  /**
   * What a retry gets if an earlier attempt may have had its effect. `'rerun'`: the handler runs with `previousOutcome:
   * 'unknown'`. `'refuse'`: 409 `outcome_unknown`.
   * @default 'rerun': most clients need a retry after a crash
   */
  readonly unknownOutcome?: 'rerun' | 'refuse' | undefined

  /**
   * Where effects may come from. `'assumed'`: anywhere in a handler, so only a refusal certainly has none.
   * `'declared'`: only after `mayHaveEffect()`, which each handler must call before its irrevocable step; a failure
   * without that call is certain. `'in-transaction'`: only inside the `transaction` of a Postgres, MySQL or SQLite
   * store: nothing is claimed before it, and no outcome is ever unknown; a success without it is withheld (500
   * `transaction_missing`).
   * @default 'assumed': a forgotten call must not lead to a second payment
   */
  readonly effects?: 'assumed' | 'declared' | 'in-transaction' | undefined

  /**
   * What the client gets if the store does not confirm a success in time. `'send'`: its answer; the completion is
   * retried in the background. If the store stays away until the lease ends, another process may send a second success.
   * `'withhold'`: 503 `store_unavailable`; a retry gets the answer once it is stored. A run that no claim protects sends it.
   * @default 'send': the operation was carried out, and its client should know
   */
  readonly unconfirmedSuccess?: 'send' | 'withhold' | undefined

  /**
   * The time limit of a command to the store.
   * @default 2_000: a hundred times a slow round trip
   */
  readonly storeTimeoutMs?: number | undefined

  /**
   * The largest result of a step that is kept, in bytes.
   * @default 65_536 (64 KiB): an id and a status are enough to go on
   */
  readonly maxStepBytes?: number | undefined

  /**
   * What happens if the store cannot confirm a claim. `'refuse'`: 503 `store_unavailable`. `'runUnprotected'`: the
   * handler runs, with an event, and a retry may run it again; a waiting duplicate (`inFlightWaitMs`) is still refused.
   * @default 'refuse': a late payment is better than a double payment
   */
  readonly storeFailure?: 'refuse' | 'runUnprotected' | undefined

  /**
   * Receives an event for everything that happens. A listener that throws changes nothing.
   * @default none: the process prints its warnings
   */
  readonly onEvent?: ((event: EngineEvent) => void) | undefined

  /**
   * Checks an answer in a record: returns `null` if it can be sent, else what was expected. A record whose answer
   * cannot be sent is damaged, which counts as a store failure.
   * @default none: every answer is valid
   */
  readonly answerFault?: ((answer: Answer) => string | null) | undefined
}

type Optional = 'onEvent' | 'answerFault'

export type ResolvedEngineOptions = Resolved<Omit<EngineOptions, Optional>> & Pick<EngineOptions, Optional>

/** Options with their defaults in place of what was absent, or `undefined`. */
export type Resolved<Options> = { readonly [Name in keyof Options]-?: Exclude<Options[Name], undefined> }

/** The options that say how long an operation may be repeated. */
export type RepeatOptions = Pick<ResolvedEngineOptions, 'retentionMs' | 'unknownRetentionMs' | 'clockSkewMs'>

/** For so long after it was first sent, the record of an operation is certainly there. */
export function longestRepeatMs({ retentionMs, unknownRetentionMs, clockSkewMs }: RepeatOptions): number {
  return Math.min(retentionMs, unknownRetentionMs) - clockSkewMs
}

export const ENGINE_DEFAULTS = {
  leaseMs: 30_000,
  maxRunMs: 15 * 60_000,
  retentionMs: 24 * 3_600_000,
  clockSkewMs: 5 * 60_000,
  inFlightWaitMs: 0,
  retryAfterMs: 1_000,
  unknownOutcome: 'rerun',
  effects: 'assumed',
  unconfirmedSuccess: 'send',
  storeTimeoutMs: 2_000,
  maxStepBytes: 65_536,
  storeFailure: 'refuse',
} as const satisfies Partial<EngineOptions>
