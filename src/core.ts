/**
 * The entry `once-per-key/core`: the core and, until 0.3, what 0.1 exported here for requests, which is now in
 * `once-per-key/http`.
 */
export * from './core/index.js'
export type {
  Asker,
  AttemptName,
  BodyFieldOptions,
  HeaderPairs,
  IdempotencyEvent,
  IdempotencyOptions,
  KeepHeader,
  KnownOutcome,
  LegacyKey,
  Operator,
  Problem,
  ProblemCode,
  ProblemStatuses,
  RenderProblem,
  RequestFacts,
  Settled,
} from './http/index.js'
export { bodyField, ietfDraft, singleTenant } from './http/index.js'
export {
  createOldEngine as createEngine,
  type Execution,
  type OldDecision as Decision,
  type OldEngine as Engine,
} from './http/legacy-engine.js'
