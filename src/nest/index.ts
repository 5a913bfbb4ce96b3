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
  singleTenant,
  withoutBody,
} from '../http/index.js'
export { Idempotent, Operation } from './decorators.js'
export { IdempotencyModule } from './module.js'
export type { NestOptions, NestRequest } from './nest-options.js'
export { IdempotencyService } from './protections.js'
