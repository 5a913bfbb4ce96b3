/** What an application gets from the entry of each binding. */
export {
  CertainFailure,
  type CertainFailureOptions,
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
} from './index.js'
