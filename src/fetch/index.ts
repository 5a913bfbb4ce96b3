export {
  CertainFailure,
  type CertainFailureOptions,
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
export { type FetchHandler, type HandleTerms, idempotency, type Once } from './idempotency.js'
export type { FetchIdempotencyOptions } from './options.js'
