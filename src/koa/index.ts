export { contextOf } from '../core/index.js'
export * from '../http/every-binding.js'
export type { IdempotencyOptions } from '../http/index.js'
export { idempotency, type Middleware } from './middleware.js'
