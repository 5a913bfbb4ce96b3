export { contextOf } from '../core/index.js'
export * from '../http/every-binding.js'
export { type Reply, reply } from '../http/index.js'
export { type HonoIdempotencyOptions, idempotency, type Middleware } from './idempotency.js'
