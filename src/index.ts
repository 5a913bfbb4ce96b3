export { contextOf } from './core/index.js'
export { type IdempotencyRequest, idempotency, type Middleware, withoutBody } from './express/middleware.js'
export * from './http/every-binding.js'
export type { IdempotencyOptions } from './http/index.js'
