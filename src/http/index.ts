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
  Option,
  OptionFault,
  OptionRule,
  OptionTable,
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
export { bodyHeaders, fitsBufferedBody, isReply, type Reply, reply } from './answer/answer.js'
export {
  createProblemFrom,
  type ProblemCatalogue,
  type ProblemEntry,
  type ProblemTerms,
  problemCatalogue,
  toProblemAnswer,
} from './answer/problem.js'
export { type AttemptName, type Controls, type KnownOutcome, type Operator, pickControls } from './engine/operator.js'
export { type Asker, createRequestEngine, type RequestEngine } from './engine/request-engine.js'
export {
  type AnswerBuffer,
  type Decision,
  type Rejected,
  type Replay,
  type RequestEnd,
  type RequestRun,
  type WaitUntil,
  waitFor,
} from './engine/request-run.js'
export { createStreamedBody, type ResponseBody, readResponseBody } from './engine/response-body.js'
export { aHeaderName, listCoveredMethods, requestOptionTable as requestOptions } from './options/option-rules.js'
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
  type Rejection,
  type RenderProblem,
  toProblemBody,
} from './options/problem.js'
export type { HeaderPairs, RequestFacts } from './request/facts.js'
export {
  ByteCollector,
  parseComparableBody,
  type ReadBody,
  readAtMost,
  readBodyCopy,
  toBodyStream,
} from './request/request-body.js'
export { computeRequestFingerprint } from './request/request-fingerprint.js'
export {
  createFirstSentReader,
  createScopeReader,
  type FirstSentReading,
  type Scope,
  type ScopeWords,
  singleTenant,
} from './request/request-identity.js'
