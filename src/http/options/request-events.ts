import type { EngineEvent } from '../../core/events/events.js'
import type { ProblemCode } from './problem.js'

/** Refusals caused by the request itself: by its key or its body. */
export type Rejection = Extract<
  ProblemCode,
  'key_missing' | 'key_invalid' | 'body_too_deep' | 'body_too_large' | 'content_type_unsupported'
>

/** What happened. Contains no bodies, and no header values except the key itself. */
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
