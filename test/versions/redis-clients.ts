import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis'
import * as nodeRedis6 from 'redis'
import { ioredis, nodeRedis, nodes, type OpenClient, TYPE_MAPPING, url } from '../adapters/redis/opened-client.js'
import { SENTINEL_NAME } from '../adapters/redis/redis-sentinel.js'

// Each client that is tried, by its name. `integrations/versions` has more of them.

export const SINGLE: Readonly<Record<string, OpenClient>> = {
  'ioredis 6': ioredis((port) => new Redis6(port)),
  'ioredis 6, RESP2': ioredis((port) => new Redis6(port, { protocol: 2 })),
  'ioredis 6, keyPrefix': ioredis((port) => new Redis6(port, { keyPrefix: 'app:' })),
  'ioredis 6, enableAutoPipelining': ioredis((port) => new Redis6(port, { enableAutoPipelining: true })),
  'ioredis 6, stringNumbers': ioredis((port) => new Redis6(port, { stringNumbers: true })),
  'ioredis 6, another db': ioredis((port) => new Redis6(port, { db: 3, lazyConnect: true })),
  'node-redis 6': nodeRedis((port) => nodeRedis6.createClient({ url: url(port) })),
  'node-redis 6, RESP 2': nodeRedis((port) => nodeRedis6.createClient({ url: url(port), RESP: 2 })),
  'node-redis 6, commandOptions.typeMapping': nodeRedis((port) =>
    nodeRedis6.createClient({ url: url(port), commandOptions: { typeMapping: TYPE_MAPPING } }),
  ),
  'node-redis 6, keyPrefix': nodeRedis((port) => nodeRedis6.createClient({ url: url(port), keyPrefix: 'node:' })),
  'node-redis 6, disableOfflineQueue': nodeRedis((port) =>
    nodeRedis6.createClient({ url: url(port), disableOfflineQueue: true }),
  ),
  'node-redis 6, withTypeMapping': async (port) => {
    const client = nodeRedis6.createClient({ url: url(port) })
    await client.connect()
    return { client: client.withTypeMapping(TYPE_MAPPING), close: () => client.destroy() }
  },
}

export const CLUSTER: Readonly<Record<string, OpenClient>> = {
  'ioredis 6': ioredis((port) => new Cluster6(nodes(port))),
  'ioredis 6, keyPrefix': ioredis((port) => new Cluster6(nodes(port), { keyPrefix: 'app:' })),
  'ioredis 6, enableAutoPipelining, scaleReads': ioredis(
    (port) => new Cluster6(nodes(port), { enableAutoPipelining: true, scaleReads: 'slave' }),
  ),
  'node-redis 6': nodeRedis((port) => nodeRedis6.createCluster({ rootNodes: [{ url: url(port) }] })),
  'node-redis 6, keyPrefix': nodeRedis((port) =>
    nodeRedis6.createCluster({ rootNodes: [{ url: url(port) }], keyPrefix: 'node:' }),
  ),
  'node-redis 6, useReplicas, RESP 2': nodeRedis((port) =>
    nodeRedis6.createCluster({ rootNodes: [{ url: url(port) }], useReplicas: true, RESP: 2 }),
  ),
  'node-redis 6, commandOptions.typeMapping': nodeRedis((port) =>
    nodeRedis6.createCluster({ rootNodes: [{ url: url(port) }], commandOptions: { typeMapping: TYPE_MAPPING } }),
  ),
}

export const SENTINEL: Readonly<Record<string, OpenClient>> = {
  'ioredis 6': ioredis((port) => new Redis6({ sentinels: nodes(port), name: SENTINEL_NAME })),
  'node-redis 6': nodeRedis((port) =>
    nodeRedis6.createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: nodes(port) }),
  ),
}

/** What one may take for a client. */
export const NO_CLIENTS: Readonly<Record<string, () => unknown>> = {
  'a transaction of ioredis 6': () => new Redis6({ lazyConnect: true }).multi(),
  'a pool of node-redis 6': () => nodeRedis6.createClientPool(),
}
