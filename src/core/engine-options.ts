import type { EngineEvent } from './events.js'
import type { Answer } from './record.js'
import type { Store } from './store.js'

/** What runs an operation once, whatever it is. All durations are integers, in milliseconds. */
export interface EngineOptions {
  /** Where records are kept: `new MemoryStore()` for one process, `new RedisStore(…)` for many. */
  readonly store: Store

  /**
   * How long an owner may stay silent before another may take over. Renewed at every third of it while the handler runs,
   * so it bounds the wait after a crash, not the handler. At least 4 × `storeTimeoutMs`.
   * @default 30_000: a crash costs half a minute, a garbage collection or a slow network costs nothing
   */
  readonly leaseMs?: number

  /**
   * How long the lease is renewed for a handler that does not end. At least `leaseMs`.
   * @default 900_000 (15 minutes): longer than any proxy keeps a request open
   */
  readonly maxRunMs?: number

  /**
   * How long a completed record, or one with an unknown outcome, is kept. At least `maxRunMs + leaseMs`.
   * @default 86_400_000 (24 hours): what clients of payment APIs are used to
   */
  readonly retentionMs?: number

  /**
   * How long a record whose outcome is unknown is kept: of an owner that died, or of a failure that may have had its effect.
   * At least `maxRunMs + leaseMs`.
   * @default 86_400_000 (24 hours), or what `retentionMs` is: after it the key is new, and a retry runs without being told
   */
  readonly unknownRetentionMs?: number

  /**
   * How long a duplicate waits for the owner's answer before it is refused with `in_flight`. At most `maxRunMs`. For a run of
   * the same engine it waits without a command to the store; of those that wait for another process, the first asks for all.
   * At most 1,000 wait at a time, and no scope's duplicates take more room than they leave: the others are refused at once.
   * @default 0: a waiting request holds a connection, and the client can wait as well
   */
  readonly inFlightWaitMs?: number

  /**
   * What `Retry-After` says for `store_unavailable`, and for `in_flight` at first, rounded up to seconds. For `in_flight` it
   * grows to 8 s with the part of the owner's lease that has passed, so that a client with few retries outlasts a slow
   * handler; once the owner has missed a renewal, it is what remains of the lease.
   * @default 1_000: most handlers have ended by then
   */
  readonly retryAfterMs?: number

  /**
   * What happens to a retry when an earlier attempt may have had its effect. `'rerun'`: it runs, and its handler is told
   * `previousOutcome: 'unknown'`. `'refuse'`: 409 `outcome_unknown`.
   * @default 'rerun': a retry after a crash is what most clients need, and the handler can look
   */
  readonly unknownOutcome?: 'rerun' | 'refuse'

  /**
   * Where effects may come from. `'assumed'`: anywhere in a handler, so only a refusal is certainly without effect.
   * `'declared'`: only behind `mayHaveEffect()`, which each handler calls before its irrevocable step; a failure without it
   * is certain.
   * @default 'assumed': a call that somebody forgot must not lead to a second payment
   */
  readonly effects?: 'assumed' | 'declared'

  /**
   * What a client is sent when the store does not confirm a success in time. `'send'`: its answer, while the completion is
   * retried. `'withhold'`: 503 `store_unavailable`, and the answer by a retry once it is stored. Without a store, a process
   * that is cut off from it may send a success, and after its lease another one a second success; `'withhold'` prevents that.
   * @default 'send': the operation was carried out, and its client should know
   */
  readonly unconfirmedSuccess?: 'send' | 'withhold'

  /**
   * How long a command to the store may take.
   * @default 2_000: a hundred times a slow round trip; a store that hangs must not hang requests
   */
  readonly storeTimeoutMs?: number

  /**
   * What happens when the store cannot confirm a claim. `'refuse'`: 503 `store_unavailable`. `'runUnprotected'`: the
   * handler runs, with an event, and nothing keeps a retry from running it again; what it completes is stored even beyond a
   * full store's bounds. A duplicate that waits (`inFlightWaitMs`) is refused all the same: it has heard that its owner runs.
   * @default 'refuse': a payment that is late is better than one that is made twice
   */
  readonly storeFailure?: 'refuse' | 'runUnprotected'

  /**
   * Hears what happens. A listener that throws changes nothing.
   * @default none: a process warns once that its store failed, may drop records, or that a handler ran unprotected
   */
  readonly onEvent?: (event: EngineEvent) => void

  /**
   * Judges an answer that a record shows: `null` where it can be given to somebody, else what was expected of it, in words. One
   * that cannot is a store failure: its record is damaged.
   * @default none: any answer is right
   */
  readonly answerFault?: (answer: Answer) => string | null
}

type Optional = 'onEvent' | 'answerFault'

/** The options with every default in place. */
export type ResolvedEngineOptions = Required<Omit<EngineOptions, Optional>> & Pick<EngineOptions, Optional>

/** What stands where nothing was given. */
export const ENGINE_DEFAULTS = {
  leaseMs: 30_000,
  maxRunMs: 15 * 60_000,
  retentionMs: 24 * 3_600_000,
  inFlightWaitMs: 0,
  retryAfterMs: 1_000,
  unknownOutcome: 'rerun',
  effects: 'assumed',
  unconfirmedSuccess: 'send',
  storeTimeoutMs: 2_000,
  storeFailure: 'refuse',
} as const satisfies Partial<EngineOptions>
