export type { Json, JsonInputOf, JsonOf } from '../core/index.js'
export {
  CertainFailure,
  type CertainFailureOptions,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyErrorCode,
  type RefusalCode,
} from '../core/index.js'
export type { AttemptedOperation, KnownResult, Operation, OperationName } from './operation.js'
export { RefusedError } from './operation-run.js'
export type { ResultCodec } from './results.js'
export { type CodecOptions, type CodecRunner, type JsonRunner, type RunnerControls, runner } from './runner.js'
export type { RunnerEvent, RunnerOptions } from './runner-options.js'
