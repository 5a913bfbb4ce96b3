export { findReplyFault, type ReplyFault } from './calls/reply.js'
export { keepProcessAlive } from './calls/timers.js'
export type { Claimed } from './engine/claims.js'
export { createOperationEngine, type OperationEngine } from './engine/engine.js'
export {
  CertainFailure,
  type CertainFailureOptions,
  describeCause,
  describeKind,
  IdempotencyError,
  type IdempotencyErrorCode,
  isCertainFailure,
  recognizeAcrossCopies,
} from './errors.js'
export {
  type CommandName,
  type EngineEvent,
  type FailureReason,
  guardListener as safeListener,
  type Refusal,
  type StoreFailure,
  warnOnce,
  warnUnheard,
} from './events/events.js'
export type { RefusalCode, Refused, Replayed, RunEnd } from './events/refusal.js'
export type { ClaimTrace, CommandTrace, EventTrace, TracedEvent } from './events/trace.js'
export {
  type AsInput,
  type AsResult,
  encodeLooseJson,
  encodeStrictJson,
  type Json,
  type JsonInputOf,
  type JsonOf,
  parseJson,
} from './json.js'
export { type MaybePromise, runAfterwards, whenever } from './maybe-promise.js'
export {
  mountedTwiceError,
  operationTakenError,
  refuseFactory,
  refuseMount,
  transactionLateError,
  transactionStreamedError,
  transactionsMissingError,
} from './misuse.js'
export type { EndedRecord, ErasedAnswers, ScopeName, ScopeRecord, UnknownOutcome } from './operator/operator-calls.js'
export { type EngineOptions, engineOptionTable as engineOptions } from './options/engine-options.js'
export { fingerprintOf } from './record/digest.js'
export {
  buildStorageKey,
  deriveKey,
  findFirstSentFault,
  findKeyFault,
  findNamespaceFault,
  findScopeFault,
  type Identity,
  parseStorageKey,
  type RecordName,
  SINGLE_TENANT,
} from './record/identity.js'
export type { Entered, Entry, Fenced, Free, Looked, Looking, Withheld } from './record/looked.js'
export {
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  type Forgetting,
  type GivenAnswer,
  type GivenByHand,
  type IdempotencyRecord,
  type ListedRecord,
  type ListedRecords,
  NOT_KEPT,
  type Ownership,
  type PreviousOutcome,
  type Resolution,
  type ShownStep,
  type Step,
  type StepChange,
  type StoredStep,
} from './record/record.js'
export { toListedRecord, toListedRecordIfUnknown } from './record/shown.js'
export * as machine from './record/whole-machine.js'
export { type ActingContext, carryRun, contextOf, type IdempotencyContext, type StepOf } from './run/context.js'
export type { AnswerSource, ClaimedRun as Run, Completion, Finish } from './run/run-end.js'
export type { FailureKind } from './run/run-state.js'
export type { RecordedResult, StepInHand, StepOptions } from './run/step.js'
export { type CasStoreOptions, casStore, type RecordPage, type VersionedRecord } from './store/cas-store.js'
export { CasStoreError, type CasStoreErrorCode } from './store/cas-store-error.js'
export { encodeRecord } from './store/record-text.js'
export { type Around, type Store, StoreError, type StoreEvent, type Unclaimed } from './store/store.js'
export { completeByHand, step, type Transactions, transact } from './transaction/transact.js'
export {
  completeByHandAtOnce,
  type SynchronousTransactions,
  stepAtOnce,
  transactAtOnce,
} from './transaction/transact-at-once.js'
export {
  type AllowEmpty,
  readAllowEmpty,
  type WithAllowEmpty,
  type WithResult,
} from './transaction/transaction-call.js'
export * as optionRules from './validation.js'
export {
  type Fault as OptionFault,
  findMistakes,
  type Option,
  type OptionTable,
  type Rule as OptionRule,
  resolveOptions,
} from './validation.js'
