import type { Cluster, Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { driver } from '../driver.js'

export interface RedisTarget {
  readonly kind: 'redis'
  readonly store: RedisStore
  readonly prefix: string
  /** Every server that takes writes. */
  readonly servers: readonly Redis[]
  close(): Promise<void>
}

const CONNECT_MS = 5_000
const DEFAULT_PREFIX = 'once-per-key:'

export async function openRedis(url: string, prefix = DEFAULT_PREFIX): Promise<RedisTarget> {
  const ioredis = await driver('ioredis', () => import('ioredis'))
  // One try: a command line is run again by whoever typed it.
  const options = { lazyConnect: true, connectTimeout: CONNECT_MS, maxRetriesPerRequest: 1, retryStrategy: () => null }
  const redis = new ioredis.Redis(url, options)
  redis.on('error', ignored)
  try {
    await redis.connect()
  } catch (error) {
    throw new Error(`Redis cannot be reached: ${(error as Error).message}`)
  }
  const isCluster = /^cluster_enabled:1/m.test(await redis.info('cluster'))
  if (!isCluster) return target(redis, prefix, [redis])
  const { host, port, username, password, tls } = redis.options
  redis.disconnect()
  const cluster = new ioredis.Cluster([{ host: host as string, port: port as number }], {
    lazyConnect: true,
    redisOptions: { username, password, tls } as object,
  })
  cluster.on('error', ignored)
  await cluster.connect()
  return target(cluster, prefix, cluster.nodes('master'))
}

function target(client: Redis | Cluster, prefix: string, servers: readonly Redis[]): RedisTarget {
  const store = new RedisStore({ client, prefix, prefixMayMeetOthers: true })
  return { kind: 'redis', store, prefix, servers, close: async () => client.disconnect() }
}

/** Each command rejects by itself. */
function ignored(): void {}
