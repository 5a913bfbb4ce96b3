export * from '../every-store.js'
export type { RedisClient, SendCommand } from './client.js'
export { RedisStore, type RedisStoreOptions } from './redis-store.js'
