export type { UnknownOutcome } from '../core/operator-calls.js'
export { fitsHeldBody, type KeepHeader } from './answer.js'
export type { Asking, Decision, RequestFacts } from './decision.js'
export { requestFingerprint } from './fingerprint.js'
export { aHeaderName, bodyHeaders } from './header-name.js'
export { type HeldBody, heldBody, readAtMost } from './held-body.js'
export { type BodyFieldOptions, bodyField, type LegacyKey } from './legacy-key.js'
export { type Controls, controlsOf, type Operator } from './operator.js'
export { mistakesInOptions } from './option-rules.js'
export type { IdempotencyOptions } from './options.js'
export {
  ietfDraft,
  type Problem,
  type ProblemCatalogue,
  type ProblemCode,
  type ProblemEntry,
  type ProblemStatuses,
  type ProblemTerms,
  problemAnswer,
  problemBody,
  problemCatalogue,
  problemFrom,
  type RenderProblem,
} from './problem.js'
export { comparableBody, type ReadBody } from './request-body.js'
export { type Asker, createRequestEngine, type RequestEngine } from './request-engine.js'
export type { IdempotencyEvent, Rejection } from './request-events.js'
export type { HeldAnswer, RequestRun } from './request-run.js'
export type { AttemptName, KnownOutcome } from './resolution.js'
export { type Scope, type ScopeWords, scopeReader, singleTenant } from './scope.js'
export type { HeaderPairs, Rejected, Replay, Settled } from './settled.js'
export { streamedBody } from './streamed-body.js'
export { unreadBody } from './unread-body.js'
export { withoutBody } from './without-body.js'
