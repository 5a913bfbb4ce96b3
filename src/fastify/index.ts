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
  type IdempotencyOptions,
  ietfDraft,
  type LegacyKey,
  type Problem,
  type ProblemCode,
  type ProblemStatuses,
  singleTenant,
  withoutBody,
} from '../http/index.js'
export { type IdempotencyControls, type IdempotencyPlugin, idempotency } from './plugin.js'
