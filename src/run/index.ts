export {
  type Answer,
  type AsInput,
  type AsResult,
  CertainFailure,
  type CertainFailureOptions,
  type CommandReply,
  type FailureReason,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyErrorCode,
  type IdempotencyRecord,
  type Json,
  type JsonInputOf,
  type JsonOf,
  type PreviousOutcome,
  type Refusal,
  type RefusalCode,
  type ShownStep,
  type StepInHand,
  type StepOf,
  type StepOptions,
  type Store,
  type StoreFailure,
  type UnknownOutcome,
} from '../core/index.js'
export type { AttemptedOperation, KnownResult, Operation, OperationName } from './operation.js'
export { RefusedError } from './operation-run.js'
export type { ResultCodec } from './results.js'
export { type CodecOptions, type CodecRunner, type JsonRunner, type RunnerControls, runner } from './runner.js'
export type { RunnerEvent, RunnerOptions } from './runner-options.js'
