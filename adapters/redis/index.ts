export type { Hearing, OwnersCommand, OwnersReply, SentOperation, SentTerms } from '../../src/core/index.js'
export * from '../every-store.js'
export type { RedisClient, SendCommand } from './client.js'
export { RedisStore, type RedisStoreOptions } from './redis-store.js'
