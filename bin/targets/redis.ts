import type { Cluster, Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { loadDriver } from '../driver.js'
import { awaitWithTimeLimit, CONNECT_MS, DRIVER_MS, describeError } from '../limits.js'

export interface RedisTarget {
  readonly kind: 'redis'
  readonly store: RedisStore
  readonly prefix: string
  readonly database: number
  /** Every server that takes writes. */
  readonly servers: readonly Redis[]
  close(): Promise<void>
}

const DEFAULT_PREFIX = 'once-per-key:'

/** One try: a command line is run again by whoever typed it. */
const OF_SERVER = {
  connectTimeout: CONNECT_MS,
  commandTimeout: DRIVER_MS,
  maxRetriesPerRequest: 1,
  retryStrategy: () => null,
}

export async function openRedis(url: string, prefix = DEFAULT_PREFIX): Promise<RedisTarget> {
  const { default: ioredis } = await loadDriver('ioredis', () => import('ioredis'))
  // Not `ioredis.Redis`, which releases before 5.3 lack.
  const unconnected = new ioredis.default(url, { lazyConnect: true, ...OF_SERVER })
  assertDatabaseNumber(unconnected)
  const redis = await connectClient(unconnected)
  await selectDatabase(redis)
  if (!(await isCluster(redis))) return createRedisTarget(redis, prefix, [redis])
  const { host, port, username, password, tls } = redis.options
  redis.disconnect()
  const cluster = await connectClient(
    new ioredis.Cluster([{ host: host as string, port: port as number }], {
      lazyConnect: true,
      clusterRetryStrategy: () => null,
      redisOptions: { username, password, tls, ...OF_SERVER } as object,
    }),
  )
  return createRedisTarget(cluster, prefix, cluster.nodes('master'))
}

/** ioredis takes what follows the host for a number, and crashes on another one. It may be a part of the password. */
function assertDatabaseNumber({ options: { db } }: Redis): void {
  if (!Number.isNaN(db)) return
  throw new Error(
    'The URL of Redis names no database by its number, as redis://host/2 does: is a / of its password not written %2F?',
  )
}

/** ioredis stays in database 0 where it may not have the one of the URL: other records would be changed than were meant. */
async function selectDatabase(redis: Redis): Promise<void> {
  const { db = 0 } = redis.options
  if (db === 0) return
  try {
    await redis.select(db)
  } catch (error) {
    redis.disconnect()
    throw new Error(`Redis does not give its database ${db}: ${describeError(error)}`, { cause: error })
  }
}

/** Not guessed: a walk through one node of a cluster would miss what the others have. */
async function isCluster(redis: Redis): Promise<boolean> {
  try {
    return /^cluster_enabled:1/m.test(await redis.info('cluster'))
  } catch (error) {
    redis.disconnect()
    const wayOut = 'Allow INFO to this user, or give --store with a client of your own.'
    throw new Error(`Redis does not say whether it is a cluster: ${describeError(error)}. ${wayOut}`, { cause: error })
  }
}

/** @throws an error with the cause, which ioredis tells as an event: its promise says that the connection is closed. */
async function connectClient<Client extends Redis | Cluster>(client: Client): Promise<Client> {
  let cause: unknown
  client.on('error', (error: unknown) => {
    cause ??= error
  })
  try {
    await awaitWithTimeLimit(CONNECT_MS, client.connect(), 'It did not answer')
  } catch (error) {
    if (client.status !== 'end') client.disconnect()
    throw new Error(`Redis cannot be reached: ${describeError(cause ?? error)}`)
  }
  return client
}

function createRedisTarget(client: Redis | Cluster, prefix: string, servers: readonly Redis[]): RedisTarget {
  const store = new RedisStore({ client, prefix, prefixMayMeetOthers: true })
  const database = servers[0]?.options.db ?? 0
  return { kind: 'redis', store, prefix, database, servers, close: async () => client.disconnect() }
}
