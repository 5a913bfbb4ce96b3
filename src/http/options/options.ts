import { ENGINE_DEFAULTS, type EngineOptions } from '../../core/options/engine-options.js'
import type { Answer } from '../../core/record/record.js'
import type { IdempotencyEvent, ProblemStatuses, RenderProblem } from './problem.js'
import { NO_TRAITS, type Profile, type ProfileTraits } from './profile.js'

/** Decides whether a header (name in lower case) is kept with an answer; `byDefault` is what the library would do. */
export type KeepHeader = (name: string, byDefault: boolean) => boolean

/** The options of a request engine and of each binding. All durations are integers, in milliseconds. */
export interface IdempotencyOptions<Req = unknown> extends Omit<EngineOptions, 'onEvent' | 'answerFault'> {
  /**
   * Whose key it is: the merchant account that authentication found. There is no default, because a shared one leaks
   * one merchant's answers to another; an application with a single tenant uses `singleTenant`. Anything but a string
   * of 1 to 255 characters is passed to `next` as `scope_invalid`.
   */
  readonly scope: (request: Req) => string | null | undefined | Promise<string | null | undefined>

  /**
   * A published text whose rules the API follows, as a preset of these options: `ietfDraft07`, `agenticCommerce` or
   * `universalCommerce`. A single option wins over it, unless a rule of the text could not be kept: that is a mistake.
   * @default none
   */
  readonly profile?: Profile

  /**
   * The page that tells clients how to use keys: the `type` of each problem, and `Link: <…>; rel="describedby"`. The `code`
   * tells problems apart.
   * @default none: `type` is a URN of the code
   */
  readonly documentation?: string

  /**
   * The header with the key. A value that is one RFC 8941 string (`"abc"`) is the same key as the bare `abc`; any other
   * value, for example `"abc";a=1`, is used unchanged, with its quotes. The words `undefined`, `null`, `NaN` and
   * `[object Object]` are not valid keys.
   * @default 'Idempotency-Key': the name in the IETF draft and in most payment APIs
   */
  readonly header?: string

  /**
   * Whether a request without a key is refused with 400 `key_missing`.
   * @default false: clients that do not know the header keep working
   */
  readonly required?: boolean

  /**
   * The covered methods, in upper case.
   * @default ['POST', 'PUT', 'PATCH', 'DELETE']: those that can have effects, so `app.put` is not silently unprotected
   */
  readonly methods?: readonly string[]

  /**
   * Returns true for requests that are passed on unprotected, although their method is covered.
   * @default none
   */
  readonly skip?: (request: Req) => boolean | Promise<boolean>

  /**
   * A deprecated place of the key: `bodyField('idempotencyKey', { deprecatedSince })`. If an SDK adds its own header to
   * every call, set `whenBoth: 'field'`.
   * @default none
   */
  readonly legacyKey?: LegacyKey

  /**
   * Replaces query and body in the fingerprint; method and path always count. Returns any JSON value, string or bytes.
   * Needed for `multipart/*`, whose boundary differs between retries, and if the body is in another property than
   * `req.body`. A body that nobody has read yet is misuse, unless this is `withoutBody((req) => …)`.
   * @default the query as sent, and the body: JSON by value, Buffers and strings by their bytes
   */
  readonly fingerprint?: (request: Req) => unknown

  /**
   * When the client first sent the operation, for example in `Repeatability-First-Sent`; `undefined` if it does not say. If
   * that is so long ago that the record may be gone, the request is refused with 409 `key_expired` and not run; if its record
   * is still there, it gets the answer. An invalid date, or one more than `clockSkewMs` in the future, is 400 `key_invalid`.
   * Needs a store with `inspect`.
   * @default none: nothing is checked, and a retry after the retention runs anew
   */
  readonly firstSent?: (request: Req) => Date | undefined

  /**
   * Whether an answer is a success, which is stored and never run again. Any other answer is a failure, which frees the
   * key.
   * @default status 200 to 399 except 307 and 308, which ask the client to repeat the request
   */
  readonly isSuccess?: (answer: Answer, request: Req) => boolean

  /**
   * Whether a failure certainly had no effect, so that its key is free for a corrected request. Called for answers that
   * are neither a success nor a refusal, for example 503. (A refusal is 400 to 499 except 408 and 499, and is always
   * certain.) Never called after `mayHaveEffect()`, or if there is no answer.
   * @default () => false: a bank that timed out may have paid
   */
  readonly isCertainFailure?: (answer: Answer, request: Req) => boolean

  /**
   * Whether a failure is kept, so that retries get it, and the key never runs again. Called for answers below 500 whose body is
   * kept, after `isSuccess` said no; also if the outcome would be unknown. Effects in a store's `transaction` are rolled back
   * all the same.
   * @default () => false: a failure frees the key for a corrected request. A `profile` may say otherwise
   */
  readonly keepFailure?: (answer: Answer, request: Req) => boolean

  /**
   * Which headers (names in lower case) a replay contains. Connection headers never are.
   * @default all that the handler set, except `Date` and `Set-Cookie`, which belong to one moment and one session
   */
  readonly keepHeader?: KeepHeader

  /**
   * A larger answer is streamed and not kept: its record completes without it, and a retry gets 409 `answer_not_kept`.
   * @default 1_048_576 (1 MiB): bounds the memory of a held response
   */
  readonly maxAnswerBytes?: number

  /**
   * Whether an answer of this content type is sent as its handler writes it, in place of being held and kept; in place of another
   * switch, let the handler choose a content type. It gets the header's value with its parameters:
   * `(type) => type.startsWith('application/x-ndjson')`. The record completes without the answer, before the end is sent, and a retry
   * gets 409 `answer_not_kept`. Event streams, and responses after `flushHeaders()`, are always sent so.
   * @default none: any other answer is kept, so that a retry gets it
   */
  readonly streams?: (contentType: string, request: Req) => boolean

  /**
   * Replaces the format of a refusal's body.
   * @default application/problem+json (RFC 9457)
   */
  readonly renderProblem?: RenderProblem<Req>

  /**
   * Replaces the statuses of refusals, by code; `ietfDraft` has those of the IETF draft.
   * @default the catalogue's: 400, 409, 413, 415 and 503
   */
  readonly problemStatuses?: ProblemStatuses

  /**
   * Receives an event for everything that happens. A listener that throws changes nothing.
   * @default none: a process warns once that its store failed, may drop records, or that a handler ran unprotected
   */
  readonly onEvent?: (event: IdempotencyEvent) => void
}

type Optional =
  | 'profile'
  | 'documentation'
  | 'skip'
  | 'legacyKey'
  | 'fingerprint'
  | 'firstSent'
  | 'isSuccess'
  | 'isCertainFailure'
  | 'keepFailure'
  | 'keepHeader'
  | 'streams'
  | 'renderProblem'
  | 'onEvent'

export type ResolvedOptions<Req> = Required<Omit<IdempotencyOptions<Req>, Optional>> &
  Pick<IdempotencyOptions<Req>, Optional> &
  ProfileTraits

export const DEFAULTS = {
  ...ENGINE_DEFAULTS,
  ...NO_TRAITS,
  header: 'Idempotency-Key',
  required: false,
  methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  maxAnswerBytes: 1_048_576,
  problemStatuses: {},
} as const satisfies Partial<IdempotencyOptions & ProfileTraits>

/** A deprecated place for the key: a member of the JSON body. Made by `bodyField`. */
export interface LegacyKey extends BodyFieldOptions {
  readonly field: string
}

export interface BodyFieldOptions {
  /** Since when the field is deprecated: the `Deprecation` header (RFC 9745). */
  readonly deprecatedSince: Date
  /** When the field stops working: the `Sunset` header (RFC 8594). */
  readonly sunset?: Date
  /** A page about it for clients: a `Link` with `rel="deprecation"` (RFC 9745 §3). */
  readonly link?: string
  /**
   * What happens if both the header and the field are there and differ. `'reject'`: 400 `key_invalid`. `'field'`: the
   * field wins; use it if an SDK adds its own header to every call, so that the field keeps working. `'header'`: the
   * header wins; use it if clients identify the operation in the header and something else in the field.
   * @default 'reject': two keys for one operation are a mistake, and a wrong guess would run it twice
   */
  readonly whenBoth?: 'reject' | 'field' | 'header'
}

/**
 * The key in a member of the JSON body, for clients that do not send the header yet. It never counts in the
 * fingerprint, so a client can change from field to header between two retries.
 *
 * @example
 * idempotency({ store, scope, legacyKey: bodyField('idempotencyKey', { deprecatedSince: new Date('2026-01-01') }) })
 */
export function bodyField(field: string, options: BodyFieldOptions): LegacyKey {
  return { field, ...options }
}
