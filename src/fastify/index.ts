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
  withoutBody,
} from '../http/index.js'
export { type IdempotencyControls, type IdempotencyPlugin, idempotency } from './plugin.js'
