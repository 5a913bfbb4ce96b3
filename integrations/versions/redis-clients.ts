import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import * as nodeRedis5 from 'redis5'
import {
  ioredis,
  nodeRedis,
  nodes,
  type OpenClient,
  TYPE_MAPPING,
  url,
} from '../../test/adapters/redis/opened-client.js'
import { SENTINEL_NAME } from '../../test/adapters/redis/redis-sentinel.js'
import * as newest from '../../test/versions/redis-clients.js'

export const SINGLE: Readonly<Record<string, OpenClient>> = {
  ...newest.SINGLE,
  'ioredis 5': ioredis((port) => new Redis5(port)),
  'ioredis 5, keyPrefix, enableAutoPipelining': ioredis(
    (port) => new Redis5(port, { keyPrefix: 'app:', enableAutoPipelining: true }),
  ),
  'ioredis 5, stringNumbers': ioredis((port) => new Redis5(port, { stringNumbers: true })),
  'node-redis 5': nodeRedis((port) => nodeRedis5.createClient({ url: url(port) })),
  'node-redis 5, RESP 3': nodeRedis((port) => nodeRedis5.createClient({ url: url(port), RESP: 3 })),
  'node-redis 5, commandOptions.typeMapping': nodeRedis((port) =>
    nodeRedis5.createClient({ url: url(port), commandOptions: { typeMapping: TYPE_MAPPING } }),
  ),
}

export const CLUSTER: Readonly<Record<string, OpenClient>> = {
  ...newest.CLUSTER,
  'ioredis 5': ioredis((port) => new Cluster5(nodes(port))),
  'ioredis 5, keyPrefix, enableAutoPipelining': ioredis(
    (port) => new Cluster5(nodes(port), { keyPrefix: 'app:', enableAutoPipelining: true }),
  ),
  'node-redis 5': nodeRedis((port) => nodeRedis5.createCluster({ rootNodes: [{ url: url(port) }] })),
  'node-redis 5, RESP 3': nodeRedis((port) => nodeRedis5.createCluster({ rootNodes: [{ url: url(port) }], RESP: 3 })),
}

export const SENTINEL: Readonly<Record<string, OpenClient>> = {
  ...newest.SENTINEL,
  'ioredis 5': ioredis((port) => new Redis5({ sentinels: nodes(port), name: SENTINEL_NAME })),
  'node-redis 5': nodeRedis((port) =>
    nodeRedis5.createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: nodes(port) }),
  ),
}

export const NO_CLIENTS: Readonly<Record<string, () => unknown>> = {
  ...newest.NO_CLIENTS,
  'a transaction of ioredis 5': () => new Redis5({ lazyConnect: true }).multi(),
  'a pool of node-redis 5': () => nodeRedis5.createClientPool(),
}
