export {
  type ExpectedOnce,
  type ExpectOnceOptions,
  type ExpectOnceRequest,
  expectOnce,
} from './application/expect-once.js'
export type { OnceAnswer, OnceApp, OnceRequest } from './application/once-app.js'
export {
  type BindingApp,
  type BindingCall,
  type BindingOptions,
  type BindingReply,
  bindOptions,
  type ReadHeader,
} from './bindings/binding-app.js'
export type { OpenBinding, OpenedBinding } from './bindings/binding-bench.js'
export type { BindingLawsOptions } from './bindings/binding-law.js'
export { bindingLaws } from './bindings/binding-laws.js'
export type { BindingRequest, BindingResponse, SendToBinding } from './bindings/binding-request.js'
export { type OpenedStore, type StoreLawsOptions, storeLaws } from './store/store-laws.js'
