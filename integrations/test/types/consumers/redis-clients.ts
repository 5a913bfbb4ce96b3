// Each client as it comes from its own package: no casts.
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { RedisStore } from 'once-per-key/redis'
import { createClient, createCluster, createSentinel } from 'redis'
import {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis5'

export async function stores(): Promise<RedisStore[]> {
  const sentinel = { name: 'main', sentinelRootNodes: [{ host: 'localhost', port: 26_379 }] }
  return [
    new RedisStore({ client: new Redis() }),
    new RedisStore({ client: new Redis({ protocol: 2, enableAutoPipelining: true }), prefix: 'payments:' }),
    new RedisStore({ client: new Cluster([{ host: 'localhost' }]) }),
    new RedisStore({ client: new Redis5() }),
    new RedisStore({ client: new Cluster5([{ host: 'localhost' }]) }),
    new RedisStore({ client: createClient() }),
    new RedisStore({ client: await createClient({ RESP: 2 }).connect() }),
    new RedisStore({ client: createCluster({ rootNodes: [] }) }),
    new RedisStore({ client: createSentinel(sentinel) }),
    new RedisStore({ client: createClient5() }),
    new RedisStore({ client: await createClient5({ RESP: 3 }).connect() }),
    new RedisStore({ client: createCluster5({ rootNodes: [] }) }),
    new RedisStore({ client: createSentinel5(sentinel) }),
  ]
}

// @ts-expect-error not awaited
new RedisStore({ client: createClient().connect() })
// @ts-expect-error the class, not a client
new RedisStore({ client: Redis })
// @ts-expect-error the function, not a client
new RedisStore({ client: createClient })
