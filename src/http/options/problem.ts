import type { EngineEvent } from '../../core/events/events.js'

/** Errors that a client can cause; and `transaction_missing`, which an application causes with `effects: 'in-transaction'`. */
export const PROBLEM_CODES = [
  'key_missing',
  'key_invalid',
  'body_malformed',
  'body_too_deep',
  'body_too_large',
  'content_type_unsupported',
  'in_flight',
  'mismatched',
  'answer_not_kept',
  'outcome_unknown',
  'key_expired',
  'store_unavailable',
  'transaction_missing',
] as const

/** A closed set: a new code is a minor release. */
export type ProblemCode = (typeof PROBLEM_CODES)[number]

/** A refusal as RFC 9457 describes it, with the values of its headers. */
export interface Problem<Code extends string = ProblemCode> {
  readonly code: Code
  /** A URN that identifies the code, or the page of the option `documentation`. */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  /** `Retry-After` in seconds: an integer of at least 1; `null`: the header is not sent. */
  readonly retryAfterSeconds: number | null
  /** `X-Should-Retry`: whether the same request may succeed later. */
  readonly shouldRetry: boolean
  /** Only for `key_expired`: for how many seconds records are kept, counted from the end of the operation. */
  readonly retentionSeconds?: number | undefined
  /** The page of the option `documentation`: `Link: <…>; rel="describedby"`. */
  readonly documentation?: string | undefined
}

/**
 * The members of a problem's JSON. `message` is what many SDKs show of an error; RFC 9457 §3.2 allows additional
 * members.
 */
export function toProblemBody({ type, title, status, detail, code, retentionSeconds }: Problem<string>) {
  const more = retentionSeconds === undefined ? {} : { retentionSeconds }
  return { type, title, status, detail, message: detail, code, ...more }
}

/** Replaces the body of a problem; an object is sent as JSON. Status and headers stay the same. */
export type RenderProblem<Req> = (
  problem: Problem,
  request: Req,
) => { readonly contentType?: string; readonly body: string | object }

export type ProblemStatuses = Readonly<Partial<Record<ProblemCode, number>>>

/**
 * The statuses of the IETF draft (draft-ietf-httpapi-idempotency-key-header §2.7): reusing a key for another request is
 * 422.
 */
export const ietfDraft: ProblemStatuses = Object.freeze({ key_missing: 400, in_flight: 409, mismatched: 422 })

/** Refusals caused by the request itself: by its key or its body. */
export type Rejection = Extract<
  ProblemCode,
  'key_missing' | 'key_invalid' | 'body_malformed' | 'body_too_deep' | 'body_too_large' | 'content_type_unsupported'
>

/**
 * What happened. Contains no bodies, and no header values except the key itself. An `error` is a copy of what was thrown, which JSON and
 * loggers show.
 */
export type IdempotencyEvent =
  | EngineEvent
  /** A request was refused because of its key or its body. */
  | { readonly type: 'rejected'; readonly code: Rejection }
  /** An option function failed where an error must not escape; its default was used. */
  | {
      readonly type: 'option_failed'
      readonly option: 'renderProblem' | 'isSuccess' | 'isCertainFailure' | 'keepFailure' | 'keepHeader' | 'streams'
      readonly error: unknown
    }
