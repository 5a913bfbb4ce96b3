import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import type { RedisClient } from 'once-per-key/redis'
import * as nodeRedis6 from 'redis'
import * as nodeRedis5 from 'redis5'
import { SENTINEL_NAME } from './redis-sentinel.js'

/** A client of an application's, as it opens and closes it. */
export interface OpenedClient {
  readonly client: RedisClient
  close(): void
}

/** Opens a client at a port: of a server, of a cluster's first node, or of a sentinel. */
export type OpenClient = (port: number) => Promise<OpenedClient>

const HOST = '127.0.0.1'

function ioredis(create: (port: number) => RedisClient & { disconnect(): void }): OpenClient {
  return async (port) => {
    const client = create(port)
    return { client, close: () => client.disconnect() }
  }
}

type NodeRedis = RedisClient & { on(event: 'error', listener: () => void): unknown } & {
  connect(): Promise<unknown>
  destroy(): unknown
}

function nodeRedis(create: (port: number) => NodeRedis): OpenClient {
  return async (port) => {
    const client = create(port)
    client.on('error', () => {})
    await client.connect()
    return { client, close: () => void client.destroy() }
  }
}

const url = (port: number) => `redis://${HOST}:${port}`
const nodes = (port: number) => [{ host: HOST, port }]
/** Someone else's wish: strings as Buffers or not, numbers as strings. */
const TYPE_MAPPING = { 36: String, 58: String }

export const SINGLE: Readonly<Record<string, OpenClient>> = {
  'ioredis 6': ioredis((port) => new Redis6(port)),
  'ioredis 6, RESP2': ioredis((port) => new Redis6(port, { protocol: 2 })),
  'ioredis 6, keyPrefix': ioredis((port) => new Redis6(port, { keyPrefix: 'app:' })),
  'ioredis 6, enableAutoPipelining': ioredis((port) => new Redis6(port, { enableAutoPipelining: true })),
  'ioredis 6, stringNumbers': ioredis((port) => new Redis6(port, { stringNumbers: true })),
  'ioredis 6, another db': ioredis((port) => new Redis6(port, { db: 3, lazyConnect: true })),
  'ioredis 5': ioredis((port) => new Redis5(port)),
  'ioredis 5, keyPrefix, enableAutoPipelining': ioredis(
    (port) => new Redis5(port, { keyPrefix: 'app:', enableAutoPipelining: true }),
  ),
  'ioredis 5, stringNumbers': ioredis((port) => new Redis5(port, { stringNumbers: true })),
  'node-redis 6': nodeRedis((port) => nodeRedis6.createClient({ url: url(port) })),
  'node-redis 6, RESP 2': nodeRedis((port) => nodeRedis6.createClient({ url: url(port), RESP: 2 })),
  'node-redis 6, commandOptions.typeMapping': nodeRedis((port) =>
    nodeRedis6.createClient({ url: url(port), commandOptions: { typeMapping: TYPE_MAPPING } }),
  ),
  'node-redis 6, disableOfflineQueue': nodeRedis((port) =>
    nodeRedis6.createClient({ url: url(port), disableOfflineQueue: true }),
  ),
  'node-redis 6, withTypeMapping': async (port) => {
    const client = nodeRedis6.createClient({ url: url(port) })
    await client.connect()
    return { client: client.withTypeMapping(TYPE_MAPPING), close: () => client.destroy() }
  },
  'node-redis 5': nodeRedis((port) => nodeRedis5.createClient({ url: url(port) })),
  'node-redis 5, RESP 3': nodeRedis((port) => nodeRedis5.createClient({ url: url(port), RESP: 3 })),
  'node-redis 5, commandOptions.typeMapping': nodeRedis((port) =>
    nodeRedis5.createClient({ url: url(port), commandOptions: { typeMapping: TYPE_MAPPING } }),
  ),
}

export const CLUSTER: Readonly<Record<string, OpenClient>> = {
  'ioredis 6': ioredis((port) => new Cluster6(nodes(port))),
  'ioredis 6, keyPrefix': ioredis((port) => new Cluster6(nodes(port), { keyPrefix: 'app:' })),
  'ioredis 6, enableAutoPipelining, scaleReads': ioredis(
    (port) => new Cluster6(nodes(port), { enableAutoPipelining: true, scaleReads: 'slave' }),
  ),
  'ioredis 5': ioredis((port) => new Cluster5(nodes(port))),
  'ioredis 5, keyPrefix, enableAutoPipelining': ioredis(
    (port) => new Cluster5(nodes(port), { keyPrefix: 'app:', enableAutoPipelining: true }),
  ),
  'node-redis 6': nodeRedis((port) => nodeRedis6.createCluster({ rootNodes: [{ url: url(port) }] })),
  'node-redis 6, useReplicas, RESP 2': nodeRedis((port) =>
    nodeRedis6.createCluster({ rootNodes: [{ url: url(port) }], useReplicas: true, RESP: 2 }),
  ),
  'node-redis 6, commandOptions.typeMapping': nodeRedis((port) =>
    nodeRedis6.createCluster({ rootNodes: [{ url: url(port) }], commandOptions: { typeMapping: TYPE_MAPPING } }),
  ),
  'node-redis 5': nodeRedis((port) => nodeRedis5.createCluster({ rootNodes: [{ url: url(port) }] })),
  'node-redis 5, RESP 3': nodeRedis((port) => nodeRedis5.createCluster({ rootNodes: [{ url: url(port) }], RESP: 3 })),
}

export const SENTINEL: Readonly<Record<string, OpenClient>> = {
  'ioredis 6': ioredis((port) => new Redis6({ sentinels: nodes(port), name: SENTINEL_NAME })),
  'ioredis 5': ioredis((port) => new Redis5({ sentinels: nodes(port), name: SENTINEL_NAME })),
  'node-redis 6': nodeRedis((port) =>
    nodeRedis6.createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: nodes(port) }),
  ),
  'node-redis 5': nodeRedis((port) =>
    nodeRedis5.createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: nodes(port) }),
  ),
}
