import { idempotency } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { RedisStore } from 'once-per-key/redis'
import { ANSWER_BYTES, payoutHandler, type Work } from '../payout.js'
import { MERCHANT, type Open, type Protection, RETENTION_MS } from '../protection.js'
import { openIoredis, openIoredisCluster, openNodeRedis } from '../redis-commands.js'

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

export const oursRedisCluster: Open = async (work, { redisClusterPort }) => {
  if (redisClusterPort === undefined) throw new Error('No Redis Cluster was started.')
  const { client, close } = await openIoredisCluster(redisClusterPort)
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
    fill: (count) => fill(store, count),
    async close() {
      await once.idle()
      await closeClient?.()
    },
  }
}

/** Completed records as the requests of the load leave them; many at a time, since a trip each would take minutes. */
async function fill(store: Store, count: number): Promise<void> {
  const BATCH = 1_000
  for (let from = 0; from < count; from += BATCH) {
    await Promise.all(Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => complete(store, from + i)))
  }
}

const SCOPE = 'merchant_4f9a1c7e2b'

async function complete(store: Store, i: number): Promise<void> {
  const digits = i.toString(16).padStart(12, '0')
  const key = `${SCOPE}:5ca1ab1e-6f4e-4a52-9d6c-${digits}`
  const owned = { token: `5ca1ab1e-0000-4000-8000-${digits}`, scope: SCOPE, retentionMs: RETENTION_MS }
  const fingerprint = `v1.${digits.repeat(4)}`.slice(0, FINGERPRINT_LENGTH)
  await store.begin(key, { ...owned, fingerprint, leaseMs: 30_000, unknownOutcome: 'rerun' })
  const headers = [
    ['Location', `/payouts/payout_${digits}`],
    ['Content-Type', 'application/json; charset=utf-8'],
    ['ETag', `W/"96-${digits}${digits}xyz"`],
  ] as const
  const answer = { status: 201, statusMessage: '', headers, body: Buffer.from(digits.padEnd(ANSWER_BYTES, 'r')) }
  await store.complete(key, { ...owned, fingerprint, attempt: 1, uncertain: false, answer })
}

/** Of `v1.` and a SHA-256 in base64url. */
const FINGERPRINT_LENGTH = 46
