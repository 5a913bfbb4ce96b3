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
export { type IdempotencyRequest, idempotency, type Middleware } from './express/middleware.js'
export { withoutBody } from './express/without-body.js'
export {
  type BodyFieldOptions,
  bodyField,
  type IdempotencyEvent,
  type IdempotencyOptions,
  ietfDraft,
  type LegacyKey,
  type Problem,
  type ProblemCode,
  type ProblemStatuses,
  singleTenant,
} from './http/index.js'
