import type { KeepHeader } from './answer.js'
import type { IdempotencyEvent } from './events.js'
import type { LegacyKey } from './legacy-key.js'
import { mistakesInOptions } from './option-rules.js'
import type { ProblemStatuses, RenderProblem } from './problem.js'
import type { Answer } from './record.js'
import type { Store } from './store.js'
import { presentIn, refuseMistakes, refuseNonObject } from './validation.js'

/** All durations are whole milliseconds. */
export interface IdempotencyOptions<Req = unknown> {
  /** Where records are kept: `new MemoryStore()` for one process, `new RedisStore(…)` for many. */
  readonly store: Store

  /**
   * Whose key it is: the merchant account, as authentication found it. There is no default, since a shared one leaks one
   * merchant's answers to another; an application with a single tenant says `singleTenant`. Anything but a string of 1 to
   * 255 characters is passed to `next` as `scope_invalid`.
   */
  readonly scope: (request: Req) => string | null | undefined | Promise<string | null | undefined>

  /**
   * The header that carries the key.
   * @default 'Idempotency-Key': the IETF draft's name, and that of most payment APIs
   */
  readonly header?: string

  /**
   * Whether a request without a key is refused with 400 `key_missing`.
   * @default false: clients that do not know the header keep working
   */
  readonly required?: boolean

  /**
   * The methods that are covered, in upper case.
   * @default ['POST', 'PUT', 'PATCH', 'DELETE']: those that can have effects, so `app.put` is not silently unprotected
   */
  readonly methods?: readonly string[]

  /**
   * Requests to leave alone, although their method is covered.
   * @default none
   */
  readonly skip?: (request: Req) => boolean | Promise<boolean>

  /**
   * A deprecated place of the key: `bodyField('idempotencyKey', { deprecatedSince })`.
   * @default none
   */
  readonly legacyKey?: LegacyKey

  /**
   * Stands for query and body in the fingerprint; method and path always count. Any JSON value, string or bytes. Needed
   * for `multipart/*`, whose boundary differs between two tries.
   * @default query as sent, and body: JSON by value, Buffers and strings by their bytes
   */
  readonly fingerprint?: (request: Req) => unknown

  /**
   * Whether an answer is a success, which is stored and never run again. Any other is a failure, which frees the key.
   * @default status 200 to 399 except 307 and 308, which ask for the same request again
   */
  readonly isSuccess?: (answer: Answer, request: Req) => boolean

  /**
   * Which headers (names in lower case) a replay gives back. Connection headers never are.
   * @default all that the handler set, but `Date` and `Set-Cookie`: they belong to one moment and one session
   */
  readonly keepHeader?: KeepHeader

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
   * How long a duplicate waits for the owner's answer before it is refused with `in_flight`. At most `maxRunMs`.
   * @default 0: a waiting request holds a connection, and the client can wait as well
   */
  readonly inFlightWaitMs?: number

  /**
   * What `Retry-After` says for `in_flight` and `store_unavailable`, rounded up to seconds.
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
   * A larger answer is streamed and not kept: its record completes without it, and a retry gets 409 `answer_not_kept`.
   * @default 1_048_576 (1 MiB): bounds the memory of a response that is held
   */
  readonly maxAnswerBytes?: number

  /**
   * Another shape for a refusal's body.
   * @default application/problem+json (RFC 9457)
   */
  readonly renderProblem?: RenderProblem<Req>

  /**
   * Other statuses for refusals, by code; `ietfDraft` gives the IETF draft's.
   * @default 400, 409 and 503, as the README's table shows
   */
  readonly problemStatuses?: ProblemStatuses

  /**
   * Hears what happens. A listener that throws changes nothing.
   * @default none
   */
  readonly onEvent?: (event: IdempotencyEvent) => void
}

type Optional = 'skip' | 'legacyKey' | 'fingerprint' | 'isSuccess' | 'keepHeader' | 'renderProblem' | 'onEvent'

/** The options with every default in place. */
export type ResolvedOptions<Req> = Required<Omit<IdempotencyOptions<Req>, Optional>> &
  Pick<IdempotencyOptions<Req>, Optional>

/** What stands where nothing was given. */
export const DEFAULTS = {
  header: 'Idempotency-Key',
  required: false,
  methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  leaseMs: 30_000,
  maxRunMs: 15 * 60_000,
  retentionMs: 24 * 3_600_000,
  inFlightWaitMs: 0,
  retryAfterMs: 1_000,
  unknownOutcome: 'rerun',
  storeTimeoutMs: 2_000,
  storeFailure: 'refuse',
  maxAnswerBytes: 1_048_576,
  problemStatuses: {},
} as const satisfies Partial<IdempotencyOptions>

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveOptions<Req>(given: IdempotencyOptions<Req>): ResolvedOptions<Req> {
  refuseNonObject('idempotency()', given)
  const options = { ...DEFAULTS, ...(presentIn(given) as Pick<IdempotencyOptions<Req>, 'store' | 'scope'>) }

  refuseMistakes('idempotency()', mistakesInOptions(given, options))
  return Object.freeze({ ...options, methods: [...options.methods] })
}
