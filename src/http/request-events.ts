import type { EngineEvent } from '../core/events.js'
import type { ProblemCode } from './problem.js'

/** Refusals whose reason is the request itself: its key or its body. */
export type Rejection = Extract<
  ProblemCode,
  'key_missing' | 'key_invalid' | 'body_too_deep' | 'body_too_large' | 'content_type_unsupported'
>

/** What happened. No bodies, no header values beyond the key itself. */
export type IdempotencyEvent =
  | EngineEvent
  /** A request was refused because of its key or its body. */
  | { readonly type: 'rejected'; readonly code: Rejection }
  /** A function among the options failed where nothing may fail; its default was used. */
  | {
      readonly type: 'option_failed'
      readonly option: 'renderProblem' | 'isSuccess' | 'isCertainFailure' | 'keepHeader'
      readonly error: unknown
    }
