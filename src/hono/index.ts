export {
  CertainFailure,
  type CertainFailureOptions,
  contextOf,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyErrorCode,
  type Store,
} from '../core/index.js'
export {
  type BodyFieldOptions,
  bodyField,
  type IdempotencyEvent,
  ietfDraft,
  type LegacyKey,
  type Problem,
  type ProblemCode,
  type ProblemStatuses,
  type Reply,
  reply,
  singleTenant,
  withoutBody,
} from '../http/index.js'
export { type HonoIdempotencyOptions, idempotency, type Middleware } from './idempotency.js'
