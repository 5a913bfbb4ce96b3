import { Cluster, Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { redisLedger } from '../../../examples/payments/redis-ledger.js'
import { SENTINEL_NAME } from '../../../test/adapters/redis/redis-sentinel.js'

const REFRESH_MS = 1_000

/** Records and books in a cluster: what `openRedis` of the example is for a single Redis. */
export async function openCluster(ports: readonly number[]) {
  const cluster = new Cluster(
    ports.map((port) => ({ host: '127.0.0.1', port })),
    {
      clusterRetryStrategy: (times) => Math.min(times * 50, 500),
      slotsRefreshInterval: 0,
      slotsRefreshTimeout: 500,
      redisOptions: { maxRetriesPerRequest: 0, connectTimeout: 500, socketTimeout: 5_000 },
    },
  )
  cluster.on('error', () => {}) // A lost node is what this is about.
  await new Promise<void>((resolve) => void cluster.once('ready', resolve))
  // Not by ioredis's own interval: a client that is disconnected during a refresh would go on with it for ever.
  const refreshing = setInterval(() => cluster.refreshSlotsCache(), REFRESH_MS)
  return {
    store: new RedisStore({ client: cluster }),
    // One slot for each merchant: the books ask nothing that a cluster could not do.
    ledger: redisLedger(cluster as unknown as Redis),
    async close() {
      clearInterval(refreshing)
      cluster.disconnect()
    },
  }
}

/** The same behind sentinels. */
export async function openSentinels(ports: readonly number[]) {
  const redis = new Redis({
    sentinels: ports.map((port) => ({ host: '127.0.0.1', port })),
    name: SENTINEL_NAME,
    sentinelRetryStrategy: () => 100,
    retryStrategy: (times) => Math.min(times * 50, 300),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 500,
    socketTimeout: 5_000,
  })
  redis.on('error', () => {}) // A lost master is what this is about.
  await new Promise<void>((resolve) => void redis.once('ready', resolve))
  return {
    store: new RedisStore({ client: redis }),
    ledger: redisLedger(redis),
    close: async () => redis.disconnect(),
  }
}
