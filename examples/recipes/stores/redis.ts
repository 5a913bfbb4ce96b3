import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'

export const redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379')
export const store = new RedisStore({ client: redis, prefix: 'payments:' })
