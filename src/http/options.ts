import { ENGINE_DEFAULTS, type EngineOptions } from '../core/engine-options.js'
import type { Answer } from '../core/record.js'
import type { KeepHeader } from './answer.js'
import type { LegacyKey } from './legacy-key.js'
import type { ProblemStatuses, RenderProblem } from './problem.js'
import type { IdempotencyEvent } from './request-events.js'

/** What a request engine, and each binding, is made of. All durations are integers, in milliseconds. */
export interface IdempotencyOptions<Req = unknown> extends Omit<EngineOptions, 'onEvent' | 'answerFault'> {
  /**
   * Whose key it is: the merchant account, as authentication found it. There is no default, since a shared one leaks one
   * merchant's answers to another; an application with a single tenant says `singleTenant`. Anything but a string of 1 to
   * 255 characters is passed to `next` as `scope_invalid`.
   */
  readonly scope: (request: Req) => string | null | undefined | Promise<string | null | undefined>

  /**
   * The header that carries the key. A value that as a whole is one RFC 8941 string (`"abc"`) and the bare `abc` are the same
   * key; anything else is taken as it is, such as `"abc";a=1` with its quotes. The words `undefined`, `null`, `NaN` and
   * `[object Object]` are no keys.
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
   * A deprecated place of the key: `bodyField('idempotencyKey', { deprecatedSince })`. Say `whenBoth: 'field'` where an SDK adds
   * a header of its own to every call.
   * @default none
   */
  readonly legacyKey?: LegacyKey

  /**
   * Stands for query and body in the fingerprint; method and path always count. Any JSON value, string or bytes. Needed
   * for `multipart/*`, whose boundary differs between two tries, and where the body is kept in something else than
   * `req.body`. A body that nobody has read yet is misuse, unless this is `withoutBody((req) => …)`.
   * @default query as sent, and body: JSON by value, Buffers and strings by their bytes
   */
  readonly fingerprint?: (request: Req) => unknown

  /**
   * Whether an answer is a success, which is stored and never run again. Any other is a failure, which frees the key.
   * @default status 200 to 399 except 307 and 308, which ask for the same request again
   */
  readonly isSuccess?: (answer: Answer, request: Req) => boolean

  /**
   * Whether a failure certainly had no effect, so that its key is free for a corrected request. Asked for answers that are
   * neither a success nor a refusal (400 to 499 except 408 and 499, which is certain), such as 503; never after
   * `mayHaveEffect()`, nor where there is no answer.
   * @default () => false: a bank that timed out may have paid
   */
  readonly isCertainFailure?: (answer: Answer, request: Req) => boolean

  /**
   * Which headers (names in lower case) a replay gives back. Connection headers never are.
   * @default all that the handler set, but `Date` and `Set-Cookie`: they belong to one moment and one session
   */
  readonly keepHeader?: KeepHeader

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
   * @default the catalogue's: 400, 409, 413, 415 and 503
   */
  readonly problemStatuses?: ProblemStatuses

  /**
   * Hears what happens. A listener that throws changes nothing.
   * @default none: a process warns once that its store failed, may drop records, or that a handler ran unprotected
   */
  readonly onEvent?: (event: IdempotencyEvent) => void
}

type Optional =
  | 'skip'
  | 'legacyKey'
  | 'fingerprint'
  | 'isSuccess'
  | 'isCertainFailure'
  | 'keepHeader'
  | 'renderProblem'
  | 'onEvent'

/** The options with every default in place. */
export type ResolvedOptions<Req> = Required<Omit<IdempotencyOptions<Req>, Optional>> &
  Pick<IdempotencyOptions<Req>, Optional>

/** What stands where nothing was given. */
export const DEFAULTS = {
  ...ENGINE_DEFAULTS,
  header: 'Idempotency-Key',
  required: false,
  methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  maxAnswerBytes: 1_048_576,
  problemStatuses: {},
} as const satisfies Partial<IdempotencyOptions>
