import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import type { Logger } from 'pino'
import { watchRedis } from './availability.js'
import type { Backing } from './backing.js'
import { inTime } from './in-time.js'
import { redisLedger } from './redis-ledger.js'
import type { RedisPlace } from './redis-place.js'

const FIRST_CONTACT_MS = 1_000
const FAREWELL_MS = 1_000

/** Records and books in Redis: all processes on it are one service. It need not be there yet. */
export async function openRedis(place: RedisPlace, logger: Logger): Promise<Required<Backing>> {
  const { host, port, db } = place
  logger.info({ host, port, db }, 'records and books are in redis')
  const redis = new Redis({
    ...place,
    // What cannot be sent now fails now, and a command whose reply was lost is not sent again behind our back: a client
    // gets its 503 at once, and each layer knows what became of its command.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // A connection on which a command stays unanswered is given up.
    socketTimeout: 5_000,
    retryStrategy: (times) => Math.min(times * 50, 1_000),
  })
  const watch = watchRedis(redis, logger)
  const contact = new Promise<void>((resolve) => {
    redis.once('ready', resolve).once('close', resolve)
  })
  await inTime(contact, FIRST_CONTACT_MS).catch(() => {})
  await watch.check()

  return {
    store: new RedisStore({ client: redis }),
    ledger: redisLedger(redis),
    availability: watch,
    async close() {
      watch.stop()
      await inTime(redis.quit(), FAREWELL_MS).catch(() => {})
      redis.disconnect()
    },
  }
}
