export { contextOf } from '../core/index.js'
export * from '../http/every-binding.js'
export type { IdempotencyOptions } from '../http/index.js'
export { type IdempotencyControls, type IdempotencyPlugin, idempotency } from './plugin.js'
