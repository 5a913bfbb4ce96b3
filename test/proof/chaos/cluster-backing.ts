import { Cluster, Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { redisLedger } from '../../../examples/payments/redis-ledger.js'
import { SENTINEL_NAME } from '../../adapters/redis/redis-sentinel.js'

/** Records and books in a cluster: what `openRedis` of the example is for a single Redis. */
export async function openCluster(ports: readonly number[]) {
  const cluster = new Cluster(
    ports.map((port) => ({ host: '127.0.0.1', port })),
    {
      clusterRetryStrategy: (times) => Math.min(times * 50, 500),
      slotsRefreshInterval: 1_000,
      slotsRefreshTimeout: 500,
      redisOptions: { maxRetriesPerRequest: 0, connectTimeout: 500, socketTimeout: 5_000 },
    },
  )
  cluster.on('error', () => {}) // A lost node is what this is about.
  await new Promise<void>((resolve) => void cluster.once('ready', resolve))
  return {
    store: new RedisStore({ client: cluster }),
    // One slot for each merchant: the books ask nothing that a cluster could not do.
    ledger: redisLedger(cluster as unknown as Redis),
    close: async () => cluster.disconnect(),
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
