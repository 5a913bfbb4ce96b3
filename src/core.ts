/**
 * The entry `once-per-key/core`: the core and, for bindings of one's own, the engine that decides on requests, with its types.
 * `once-per-key/http` has all that bindings need.
 */

export type { BeginReply as Begun } from './core/index.js'
export * from './core/index.js'
export {
  type AnswerBuffer,
  type Asker,
  type AttemptName,
  createRequestEngine as createEngine,
  type Decision,
  type HeaderPairs,
  type IdempotencyEvent,
  type IdempotencyOptions,
  type KeepHeader,
  type KnownOutcome,
  type LegacyKey,
  type Problem,
  type Profile,
  type ProfileName,
  type Rejected,
  type Rejection,
  type RenderProblem,
  type Replay,
  type RequestEnd,
  type RequestEngine,
  type RequestFacts,
  type RequestRun,
} from './http/index.js'
