import type { EngineEvent } from '../events/events.js'
import type { Answer } from '../record/record.js'
import type { Store } from '../store.js'

/** The options of an engine, which runs an operation once. All durations are integers, in milliseconds. */
export interface EngineOptions {
  /** Where records are kept: `new MemoryStore()` for one process, `new RedisStore(…)` for many. */
  readonly store: Store

  /**
   * How long an owner may be silent before another may take over. Renewed every third of it while the handler runs, so
   * it bounds the wait after a crash, not the handler's duration. At least 4 × `storeTimeoutMs`.
   * @default 30_000: a crash costs half a minute; a garbage collection or a slow network costs nothing
   */
  readonly leaseMs?: number

  /**
   * How long the lease of a handler that does not end is renewed. At least `leaseMs`.
   * @default 900_000 (15 minutes): longer than any proxy keeps a request open
   */
  readonly maxRunMs?: number

  /**
   * How long a completed record, or one with an unknown outcome, is kept. At least `maxRunMs + leaseMs`.
   * @default 86_400_000 (24 hours): common among payment APIs
   */
  readonly retentionMs?: number

  /**
   * How long a record with an unknown outcome is kept: after its owner died, or after a failure that may have had its
   * effect. At least `maxRunMs + leaseMs`.
   * @default 86_400_000 (24 hours), or the value of `retentionMs`. After it the key is new, and a retry runs with
   * `previousOutcome: 'none'`
   */
  readonly unknownRetentionMs?: number

  /**
   * How far the clock of whoever says when an operation was first sent (`firstSent`) may differ from this machine's. An
   * operation is refused with `key_expired` if it was first sent longer ago than the smaller of `retentionMs` and
   * `unknownRetentionMs`, less this, unless its record is still there. Less than both of them.
   * @default 300_000 (5 minutes): as for signatures with a timestamp
   */
  readonly clockSkewMs?: number

  /**
   * How long a duplicate waits for the owner's answer before it is refused with `in_flight`. At most `maxRunMs`.
   * Waiting for a run of the same engine sends no commands to the store; of those that wait for another process, one
   * polls for all. At most 1,000 duplicates wait at a time, and one scope takes at most as many places as are still
   * free; the others are refused at once.
   * @default 0: a waiting request holds a connection, and the client can wait instead
   */
  readonly inFlightWaitMs?: number

  /**
   * The value of `Retry-After` for `store_unavailable`, and initially for `in_flight`, rounded up to seconds. For
   * `in_flight` it grows to 8 s as the owner's lease passes, so that a client with few retries outlasts a slow handler;
   * after the owner has missed a renewal, it is the rest of the lease.
   * @default 1_000: most handlers have ended by then
   */
  readonly retryAfterMs?: number

  /**
   * What happens to a retry if an earlier attempt may have had its effect. `'rerun'`: the handler runs with
   * `previousOutcome: 'unknown'`. `'refuse'`: 409 `outcome_unknown`.
   * @default 'rerun': most clients need a retry after a crash, and the handler can check
   */
  readonly unknownOutcome?: 'rerun' | 'refuse'

  /**
   * Where effects may come from. `'assumed'`: anywhere in a handler, so only a refusal certainly has no effect.
   * `'declared'`: only after `mayHaveEffect()`, which each handler must call before its irrevocable step; a failure
   * without that call is certain. `'in-transaction'`: only inside the store's `transaction`, with which `PostgresStore` and `SqliteStore`
   * then take the key, do the work and complete the record in one: nothing is claimed beforehand, and no outcome is ever unknown. A
   * success without a transaction is withheld (500 `transaction_missing`).
   * @default 'assumed': a forgotten call must not lead to a second payment
   */
  readonly effects?: 'assumed' | 'declared' | 'in-transaction'

  /**
   * What the client gets if the store does not confirm a success in time. `'send'`: its answer; the completion is
   * retried in the background. `'withhold'`: 503 `store_unavailable`; a retry gets the answer once it is stored. With
   * `'send'`, a process that cannot reach the store may send a success, and after its lease another process a second
   * one; `'withhold'` prevents that.
   * @default 'send': the operation was carried out, and its client should know
   */
  readonly unconfirmedSuccess?: 'send' | 'withhold'

  /**
   * The time limit of a command to the store.
   * @default 2_000: a hundred times a slow round trip; a store that hangs must not hang requests
   */
  readonly storeTimeoutMs?: number

  /**
   * The largest result of a step, in bytes. A larger one is recorded as done, and not kept.
   * @default 65_536 (64 KiB): an id and a status are enough to go on
   */
  readonly maxStepBytes?: number

  /**
   * What happens if the store cannot confirm a claim. `'refuse'`: 503 `store_unavailable`. `'runUnprotected'`: the
   * handler runs, with an event, and a retry may run it again; its completion is stored even beyond a full store's
   * bounds. A waiting duplicate (`inFlightWaitMs`) is refused in both cases, because its owner is known to run.
   * @default 'refuse': a late payment is better than a double payment
   */
  readonly storeFailure?: 'refuse' | 'runUnprotected'

  /**
   * Receives an event for everything that happens. A listener that throws changes nothing.
   * @default none: a process warns once that its store failed, may drop records, or that a handler ran unprotected
   */
  readonly onEvent?: (event: EngineEvent) => void

  /**
   * Checks an answer in a record: returns `null` if it can be sent, else what was expected. A record whose answer
   * cannot be sent is damaged, which counts as a store failure.
   * @default none: every answer is valid
   */
  readonly answerFault?: (answer: Answer) => string | null
}

type Optional = 'onEvent' | 'answerFault'

export type ResolvedEngineOptions = Required<Omit<EngineOptions, Optional>> & Pick<EngineOptions, Optional>

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
