import { startRedisCluster } from '../../support/redis-cluster.js'
import { startRedis } from '../../support/redis-server.js'
import { CLUSTER, SENTINEL, SINGLE } from '../../versions/redis-clients.js'
import type { OpenClient } from './opened-client.js'
import { startRedisSentinel } from './redis-sentinel.js'

/** Real servers, and the clients that can talk to them: all at one port. */
export interface Ground {
  readonly name: string
  readonly clients: Readonly<Record<string, OpenClient>>
  start(): Promise<{ readonly port: number; close(): Promise<void> }>
}

export const REDIS: Ground = { name: 'a single Redis', clients: SINGLE, start: () => startRedis('--appendonly', 'no') }

export const REDIS_CLUSTER: Ground = {
  name: 'a cluster of three masters',
  clients: CLUSTER,
  async start() {
    const { nodes, close } = await startRedisCluster()
    return { port: (nodes[0] as (typeof nodes)[0]).port, close }
  },
}

export const REDIS_SENTINEL: Ground = {
  name: 'a Redis behind a sentinel',
  clients: SENTINEL,
  start: startRedisSentinel,
}
