export { type AllowEmpty, readAllowEmpty, type WithAllowEmpty } from './allow-empty.js'
export type { AnswerSource } from './answer-source.js'
export { awaited } from './awaited.js'
export { CertainFailure, type CertainFailureOptions, isCertainFailure } from './certain-failure.js'
export type { Claimant, Claimed } from './claimant.js'
export { type ActingContext, carryRun, type IdempotencyContext } from './context.js'
export { contextOf } from './context-of.js'
export { derivedKey } from './derived-key.js'
export { fingerprintOf } from './digest.js'
export { createOperationEngine, type OperationEngine } from './engine.js'
export type { EngineOptions } from './engine-options.js'
export { mistakesInEngineOptions } from './engine-rules.js'
export { IdempotencyError, type IdempotencyErrorCode, inItsWords, kindOf } from './errors.js'
export {
  type CommandName,
  type EngineEvent,
  type FailureReason,
  type Refusal,
  type StoreFailure,
  safely as safeListener,
} from './events.js'
export type { ForgottenScope, ScopeName } from './forget-calls.js'
export {
  type Identity,
  keyFault,
  namespaceFault,
  type RecordName,
  recordName,
  SINGLE_TENANT,
  scopeFault,
  storageKey,
} from './identity.js'
export { listed, listedIfUnknown } from './listed.js'
export { type MaybePromise, whenever } from './maybe-promise.js'
export { NOT_KEPT } from './not-kept.js'
export type { UnknownOutcome } from './operator-calls.js'
export * as optionRules from './option-rules.js'
export type { RefusalCode, Refused, Replayed, Settled as RunEnd } from './outcome.js'
export type {
  Answer,
  BeginReply,
  Begun,
  Claim,
  CommandReply,
  Done,
  Forgetting,
  GivenAnswer,
  GivenByHand,
  IdempotencyRecord,
  ListedRecord,
  ListedRecords,
  Own,
  Ownership,
  PreviousOutcome,
  Resolution,
} from './record.js'
export { faultInReply, type ReplyFault } from './reply.js'
export type { Run } from './run.js'
export type { Completion, FailureKind } from './run-end.js'
export type { Settling } from './settling.js'
export type {
  Around,
  Hearing,
  OwnersCommand,
  OwnersReply,
  SentOperation,
  SentTerms,
  Store,
  StoreEvent,
} from './store.js'
export type { ClaimTrace, CommandTrace, EventTrace, TracedEvent } from './trace.js'
export { completeByHand, step, type Transactions, transact } from './transact.js'
export { completeByHandAtOnce, type SynchronousTransactions, stepAtOnce, transactAtOnce } from './transact-at-once.js'
export { transactionLate, transactionStreamed, transactionsMissing } from './transaction-errors.js'
export { checkOptions, type Fault as OptionFault, mistakesIn, type Rule as OptionRule } from './validation.js'
export { warnOnce, warnUnheard } from './warning.js'
export * as machine from './whole-machine.js'
