export {
  type Answer,
  type BodyFieldOptions,
  bodyField,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyErrorCode,
  type IdempotencyEvent,
  type IdempotencyOptions,
  ietfDraft,
  type LegacyKey,
  type Problem,
  type ProblemCode,
  type ProblemStatuses,
  type Store,
  singleTenant,
} from './core/index.js'
export { type IdempotencyRequest, idempotency, type Middleware } from './express/middleware.js'
