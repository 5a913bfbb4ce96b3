import type { MaybePromise } from '../../core/maybe-promise.js'
import type { EngineOptions, Resolved } from '../../core/options/engine-options.js'
import type { Answer } from '../../core/record/record.js'
import type { IdempotencyEvent, ProblemStatuses, RenderProblem } from './problem.js'

/** Decides whether a header (name in lower case) is kept with an answer; `byDefault` is what the library would do. */
export type KeepHeader = (name: string, byDefault: boolean) => boolean

/** The options of a request engine and of each binding. All durations are integers, in milliseconds. */
export interface IdempotencyOptions<Req = unknown> extends Omit<EngineOptions, 'onEvent' | 'answerFault'> {
  /**
   * Whose key it is: the merchant account that authentication found, 1 to 255 characters; anything else is misuse
   * (`scope_invalid`). No default: a shared scope leaks one merchant's answers to another. With a single tenant, use
   * `singleTenant`.
   */
  readonly scope: (request: Req) => string | null | undefined | Promise<string | null | undefined>

  /**
   * A published text as a preset of these options: `ietfDraft07`, `agenticCommerce` or `universalCommerce`. A single
   * option wins over it, unless it breaks a rule of the text: that is a mistake.
   * @default none
   */
  readonly profile?: Profile | undefined

  /**
   * The page that tells clients about keys: the `type` of each problem, and `Link: <…>; rel="describedby"`.
   * @default none: `type` is a URN of the code
   */
  readonly documentation?: string | undefined

  /**
   * The header with the key. A value that is one RFC 8941 string (`"abc"`) is the same key as the bare `abc`. Where the client has sent
   * none, a value that earlier middleware has put into `req.headers` counts.
   * @default 'Idempotency-Key': as in the IETF draft
   */
  readonly header?: string | undefined

  /**
   * Whether a request without a key is refused with 400 `key_missing`.
   * @default false: clients that do not know the header keep working
   */
  readonly required?: boolean | undefined

  /**
   * The covered methods, in upper case.
   * @default ['POST', 'PUT', 'PATCH', 'DELETE']: those that can have effects
   */
  readonly methods?: readonly string[] | undefined

  /**
   * Returns true for requests of a covered method that pass unprotected.
   * @default none
   */
  readonly skip?: ((request: Req) => boolean | Promise<boolean>) | undefined

  /**
   * A deprecated place of the key: `bodyField('idempotencyKey', { deprecatedSince })`.
   * @default none
   */
  readonly legacyKey?: LegacyKey | undefined

  /**
   * Replaces query and body in the fingerprint; method and path always count. Returns a JSON value, a string or bytes.
   * Needed for `multipart/*`, and if the body is not in `req.body`. If nobody has read the body yet, use
   * `withoutBody((req) => …)`.
   * @default the query as sent, and the body: JSON by value, Buffers and strings by their bytes
   */
  readonly fingerprint?: ((request: Req) => unknown) | undefined

  /**
   * When the client first sent the operation, such as by `Repeatability-First-Sent`; `undefined` if it does not say. If
   * that is longer ago than records are kept, and there is no record, the answer is 409 `key_expired`. An invalid date,
   * or one more than `clockSkewMs` in the future, is 400 `key_invalid`. Needs a store with `inspect`.
   * @default none: a retry after the retention runs anew
   */
  readonly firstSent?: ((request: Req) => Date | undefined) | undefined

  /**
   * Whether an answer is a success, which is stored and never run again, or a failure.
   * @default status 200 to 399 except 307 and 308
   */
  readonly isSuccess?: ((answer: Answer, request: Req) => boolean) | undefined

  /**
   * Whether a failure certainly had no effect, so that its key is free for a corrected request. Not called for the handler's
   * own 400 to 499 except 408 and 499, which always are certain, nor after `mayHaveEffect()`. Called with any status where the
   * handler threw an error of another service.
   * @default () => false: a bank that timed out may have paid
   */
  readonly isCertainFailure?: ((answer: Answer, request: Req) => boolean) | undefined

  /**
   * Whether a failure is kept, so that retries get it and the key never runs again. Called for answers below 500 whose
   * body is kept, after `isSuccess` said no. A store's `transaction` is rolled back all the same.
   * @default () => false, unless a `profile` says otherwise: the key is free for a corrected request
   */
  readonly keepFailure?: ((answer: Answer, request: Req) => boolean) | undefined

  /**
   * Which headers (names in lower case) a replay has. Those of the connection never are kept.
   * @default all that the handler set, except `Date` and `Set-Cookie`
   */
  readonly keepHeader?: KeepHeader | undefined

  /**
   * A larger answer is not kept: a retry gets 409 `answer_not_kept`.
   * @default 1_048_576 (1 MiB): bounds the memory of a held response
   */
  readonly maxAnswerBytes?: number | undefined

  /**
   * Whether an answer of this content type is sent as its handler writes it, and not kept: `(type) =>
   * type.startsWith('application/x-ndjson')`. A retry gets 409 `answer_not_kept`. Event streams, and responses after
   * `flushHeaders()`, always are.
   * @default none
   */
  readonly streams?: ((contentType: string, request: Req) => boolean) | undefined

  /**
   * Replaces the format of a refusal's body: returns `{ body, contentType }`.
   * @default application/problem+json (RFC 9457)
   */
  readonly renderProblem?: RenderProblem<Req> | undefined

  /**
   * Replaces the statuses of refusals, by code; `ietfDraft` has those of the IETF draft.
   * @default the catalogue's: 400, 409, 413, 415 and 503
   */
  readonly problemStatuses?: ProblemStatuses | undefined

  /**
   * Receives an event for everything that happens. A listener that throws changes nothing.
   * @default none: the process prints its warnings
   */
  readonly onEvent?: ((event: IdempotencyEvent) => void) | undefined
}

type OptionalName =
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

export type ResolvedOptions<Req> = Resolved<Omit<IdempotencyOptions<Req>, OptionalName>> &
  Pick<IdempotencyOptions<Req>, OptionalName> &
  ProfileTraits

/** What only profiles have. */
export interface ProfileTraits {
  /** Whether the same key on another path is another operation. */
  readonly keyPerPath: boolean
  /** Whether each response has the key in the header in which it was sent. */
  readonly echoesKey: boolean
}

export const NO_TRAITS: ProfileTraits = { keyPerPath: false, echoesKey: false }

/** A deprecated place for the key: a member of the JSON body. Made by `bodyField`. */
export interface LegacyKey extends BodyFieldOptions {
  readonly field: string
}

export interface BodyFieldOptions {
  /** Since when it is deprecated: the `Deprecation` header (RFC 9745). */
  readonly deprecatedSince: Date
  /** When it stops working: the `Sunset` header (RFC 8594). */
  readonly sunset?: Date | undefined
  /** A page about it: a `Link` with `rel="deprecation"` (RFC 9745 §3). */
  readonly link?: string | undefined
  /**
   * Which wins if header and field differ. `'reject'`: neither, 400 `key_invalid`. `'field'`: for an SDK that adds its
   * own header to every call. `'header'`: for clients that use the field for something else.
   * @default 'reject': a wrong guess would run one operation twice
   */
  readonly whenBoth?: 'reject' | 'field' | 'header' | undefined
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

/** The published texts that an API can follow by name. */
export type ProfileName = 'ietfDraft07' | 'agenticCommerce' | 'universalCommerce'

/** What a published text asks of idempotency keys, as options: `profile: ietfDraft07`. */
export interface Profile {
  readonly name: ProfileName
}

/**
 * The IETF draft, version 07 (draft-ietf-httpapi-idempotency-key-header): another request under the key is 422, and errors
 * below 500 are replayed, but for 408, 425, 429 and 499. Set `documentation` with it, and `required: true` on routes that need a key.
 *
 * @example idempotency({ store, scope, profile: ietfDraft07, documentation: 'https://developer.example.com/idempotency' })
 */
export const ietfDraft07: Profile = Object.freeze({ name: 'ietfDraft07' })

/**
 * The Agentic Commerce Protocol, version 2026-04-17, for checkouts and delegated payments: each POST needs a key, which
 * belongs to its path and is echoed; another body is 422; answers below 500 are replayed; problems have its flat form.
 */
export const agenticCommerce: Profile = Object.freeze({ name: 'agenticCommerce' })

/**
 * The Universal Commerce Protocol, as of August 2026: a key belongs to its path, another body is 409, answers below 500 but 408, 425, 429
 * and 499 are replayed, for 48 hours.
 */
export const universalCommerce: Profile = Object.freeze({ name: 'universalCommerce' })

/**
 * Calls an application's function for a request, and treats its result as `await` would. Throws, or rejects with, what
 * `failed` makes of a failure, and what `read` throws.
 */
export function callOption<Req, Result>(
  ask: (request: Req) => unknown,
  request: Req,
  read: (answer: unknown) => Result,
  failed: (cause: unknown) => Error,
): MaybePromise<Result> {
  let answer: MaybePromise<unknown>
  try {
    answer = ownPromise(ask(request))
  } catch (cause) {
    throw failed(cause)
  }
  if (!(answer instanceof Promise)) return read(answer)
  return answer.then(read, (cause) => {
    throw failed(cause)
  })
}

/**
 * Converts anything with a `then` into our own promise, as `await` does: a foreign `then` may throw, or call back
 * twice.
 */
function ownPromise(value: unknown): MaybePromise<unknown> {
  const mayHaveThen = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return mayHaveThen && 'then' in value ? Promise.resolve(value) : value
}

/** A registered symbol, so that an ES module and a CommonJS copy of this file share it. */
const WITHOUT_BODY = Symbol.for('once-per-key.withoutBody')

/** Marks a `fingerprint` that does not use the body, so that nobody needs to have read the body. */
export function withoutBody<Req>(fingerprint: (request: Req) => unknown): (request: Req) => unknown {
  return Object.assign((request: Req) => fingerprint(request), { [WITHOUT_BODY]: true })
}

export function isWithoutBody(fingerprint: object): boolean {
  return WITHOUT_BODY in fingerprint
}
