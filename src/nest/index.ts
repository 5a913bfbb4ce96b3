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
  agenticCommerce,
  type BodyFieldOptions,
  bodyField,
  type IdempotencyEvent,
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
  withoutBody,
} from '../http/index.js'
export { IdempotencyModule, Idempotent, Operation } from './module.js'
export type { NestOptions, NestRequest } from './nest-options.js'
export { IdempotencyService } from './protections.js'
