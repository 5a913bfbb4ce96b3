import { idempotency } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { RedisStore } from 'once-per-key/redis'
import { payoutHandler, type Work } from '../payout.js'
import { MERCHANT, type Open, type Protection, RETENTION_MS } from '../protection.js'
import { openIoredis, openNodeRedis } from '../redis-commands.js'
import { inBatches } from './floor-redis.js'

/** This library, no option set but what it needs; the memory store has room for what the benchmark puts into it. */
export const oursMemory: Open = async (work) =>
  protection(new MemoryStore({ maxBytes: 8 * 2 ** 30, maxEntries: 4_000_000 }), work)

export const oursIoredis: Open = async (work, { redisPort }) => {
  const { client, close } = await openIoredis(redisPort)
  return protection(new RedisStore({ client }), work, close)
}

export const oursIoredisAutoPipelining: Open = async (work, { redisPort }) => {
  const { client, close } = await openIoredis(redisPort, true)
  return protection(new RedisStore({ client }), work, close)
}

export const oursNodeRedis: Open = async (work, { redisPort }) => {
  const { client, close } = await openNodeRedis(redisPort)
  return protection(new RedisStore({ client }), work, close)
}

function protection(store: Store, work: Work, closeClient?: () => Promise<unknown>): Protection {
  const once = idempotency({ store, scope: (req) => req.get(MERCHANT) })
  return {
    handlers: [once, payoutHandler(work)],
    fill: (count) => inBatches(count, (i) => complete(store, `filled:${i}`)),
    async close() {
      await once.idle()
      await closeClient?.()
    },
  }
}

async function complete(store: Store, key: string): Promise<void> {
  const terms = { token: `t-${key}`, scope: 'filled', fingerprint: `v1.${key}`, retentionMs: RETENTION_MS }
  await store.begin(key, { ...terms, leaseMs: 30_000, unknownOutcome: 'rerun' })
  const headers = [['Location', `/payouts/${key}`]] as const
  const answer = { status: 201, statusMessage: '', headers, body: Buffer.from(`{"id":"${key}"}`) }
  await store.complete(key, { ...terms, attempt: 1, uncertain: false, answer })
}
