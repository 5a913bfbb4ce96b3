export * from '../http/every-binding.js'
export { type Reply, reply } from '../http/index.js'
export { type FetchHandler, type HandleTerms, idempotency, type Once } from './idempotency.js'
export type { FetchIdempotencyOptions } from './options.js'
