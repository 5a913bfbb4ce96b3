import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { sealed } from 'once-per-key/sealed'

/** Base64 of 32 random bytes each, with commas between them: the first one seals, all of them open. */
const keys = (process.env.SEALING_KEYS ?? '').split(',')

export const redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379')
export const store = sealed(new RedisStore({ client: redis, prefix: 'payments:' }), { keys })
