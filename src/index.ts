export {
  type Answer,
  CertainFailure,
  type CertainFailureOptions,
  contextOf,
  type FailureReason,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyErrorCode,
  type Store,
} from './core/index.js'
export { type IdempotencyRequest, idempotency, type Middleware, withoutBody } from './express/middleware.js'
export {
  agenticCommerce,
  type BodyFieldOptions,
  bodyField,
  type IdempotencyEvent,
  type IdempotencyOptions,
  ietfDraft,
  ietfDraft07,
  type LegacyKey,
  type Problem,
  type ProblemCode,
  type ProblemStatuses,
  type Profile,
  type ProfileName,
  singleTenant,
  universalCommerce,
} from './http/index.js'
