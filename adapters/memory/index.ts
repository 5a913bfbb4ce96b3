export { MemoryStore } from './memory-store.js'
export type { MemoryStoreOptions } from './options.js'
