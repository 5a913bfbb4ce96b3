export type {
  Answer,
  AsResult,
  FailureReason,
  IdempotencyContext,
  JsonOf,
  PreviousOutcome,
  Refusal,
  StepInHand,
  StepOf,
  StepOptions,
  Store,
  StoreFailure,
} from '../core/index.js'
export type {
  IdempotencyEvent,
  IdempotencyOptions,
  KeepHeader,
  LegacyKey,
  Problem,
  Profile,
  ProfileName,
  Rejection,
  RenderProblem,
} from '../http/index.js'
export type { OnceAnswer, OnceApp, OnceRequest } from './application/app-connection.js'
export {
  type ExpectedOnce,
  type ExpectOnceOptions,
  type ExpectOnceRequest,
  expectOnce,
} from './application/expect-once.js'
export {
  type BindingApp,
  type BindingCall,
  type BindingOptions,
  type BindingReply,
  type BindingRequest,
  type BindingResponse,
  bindOptions,
  type ReadHeader,
  type SendToBinding,
} from './bindings/binding-app.js'
export type { BindingLawsOptions, OpenBinding, OpenedBinding } from './bindings/binding-bench.js'
export { bindingLaws } from './bindings/binding-laws.js'
export type { OpenedStore } from './store/play.js'
export { type StoreLawsOptions, storeLaws } from './store/store-laws.js'
