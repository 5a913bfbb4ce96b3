export type {
  Answer,
  AsResult,
  CommandReply,
  FailureReason,
  GivenAnswer,
  IdempotencyContext,
  IdempotencyRecord,
  Identity,
  JsonOf,
  MaybePromise,
  OptionFault,
  OptionRule,
  PreviousOutcome,
  RecordName,
  Refusal,
  ShownStep,
  StepInHand,
  StepOf,
  StepOptions,
  Store,
  StoreFailure,
  UnknownOutcome,
} from '../core/index.js'
export { bodyHeaders, fitsHeldBody, isReply, type Reply, reply } from './answer/answer.js'
export {
  type ProblemCatalogue,
  type ProblemEntry,
  type ProblemTerms,
  problemAnswer,
  problemCatalogue,
  problemFrom,
} from './answer/problem.js'
export { type AttemptName, type Controls, controlsOf, type KnownOutcome, type Operator } from './engine/operator.js'
export { type Asker, createRequestEngine, type RequestEngine } from './engine/request-engine.js'
export {
  type Decision,
  type HeldAnswer,
  type Rejected,
  type Replay,
  type RequestEnd,
  type RequestRun,
  type WaitUntil,
  waitFor,
} from './engine/request-run.js'
export { type ResponseBody, readResponseBody, streamedBody } from './engine/response-body.js'
export { aHeaderName, checkAreOptions, coveredMethods, mistakesInOptions } from './options/option-rules.js'
export {
  agenticCommerce,
  type BodyFieldOptions,
  bodyField,
  type IdempotencyOptions,
  ietfDraft07,
  type KeepHeader,
  type LegacyKey,
  type Profile,
  type ProfileName,
  universalCommerce,
  withoutBody,
} from './options/options.js'
export {
  type IdempotencyEvent,
  ietfDraft,
  type Problem,
  type ProblemCode,
  type ProblemStatuses,
  problemBody,
  type Rejection,
  type RenderProblem,
} from './options/problem.js'
export type { HeaderPairs, RequestFacts } from './request/facts.js'
export {
  comparableBody,
  Gathered,
  type ReadBody,
  readAtMost,
  streamOfBody,
  unreadBody,
} from './request/request-body.js'
export { requestFingerprint } from './request/request-fingerprint.js'
export {
  type FirstSentReading,
  firstSentReader,
  type Scope,
  type ScopeWords,
  scopeReader,
  singleTenant,
} from './request/request-identity.js'
