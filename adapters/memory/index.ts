export type { MaybePromise } from '../../src/core/index.js'
export * from '../every-store.js'
export { MemoryStore } from './memory-store.js'
export type { MemoryStoreOptions } from './options.js'
