import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startRedisCluster } from '../../../test/support/redis-cluster.js'
import type { RedisServer } from '../../../test/support/redis-server.js'
import type { Choices } from './choices.js'
import { asked, failOver, type Shard } from './fail-over.js'
import type { FaultLane } from './faults.js'
import type { Failover, Ground } from './ground.js'
import { contentsOf, UNSYNCED } from './single-redis.js'

const NODE_TIMEOUT_MS = 1_000

/** Three masters, three replicas. Masters die, and some replicas lag behind when they do. */
export async function clusterRedis(folder: string, services: number): Promise<Ground> {
  const homes = Array.from({ length: 6 }, (_, node) => join(folder, `node-${node}`))
  for (const home of homes) mkdirSync(home)
  const { nodes, replicas, close } = await startRedisCluster({
    withReplicas: true,
    argumentsOf: (node) => settings(homes[node] ?? ''),
  })
  const shards = nodes.map((master, i): Shard => ({ master, replica: replicas[i] as RedisServer }))
  const failovers: Failover[] = []

  async function strike(choices: Choices): Promise<boolean> {
    const shard = choices.one(shards)
    const { failover, isPromoted } = await failOver(shard, choices, ownKeys)
    failovers.push(failover)
    return isPromoted
  }

  const lane: FaultLane = {
    name: 'failovers',
    leastPauseMs: 2_000,
    mostPauseMs: 4_000,
    faults: [{ name: 'failovers', strike }],
  }
  const ports = [...nodes, ...replicas].map(({ port }) => port)
  return {
    access: 'a cluster',
    portsOf: Array.from({ length: services }, () => ports),
    lanes: [lane],
    failovers,
    heal: async () => {},
    async contents(prefix) {
      const all = await Promise.all(shards.map(({ master }) => contentsOf(master.port, prefix)))
      return new Map(all.flatMap((each) => [...each]))
    },
    close,
  }
}

function settings(home: string): string[] {
  const cluster = ['--cluster-node-timeout', `${NODE_TIMEOUT_MS}`, '--cluster-replica-validity-factor', '0']
  const reads = ['--cluster-allow-reads-when-down', 'yes']
  return ['--dir', home, '--logfile', join(home, 'redis.log'), '--appendonly', 'yes', ...UNSYNCED, ...cluster, ...reads]
}

/** Which keys are of the shard that a node follows, by their slots. */
async function ownKeys(replica: RedisServer): Promise<(key: string) => boolean> {
  const nodes = await asked(replica, (client) => client.cluster('NODES') as Promise<string>)
  const lines = nodes.split('\n').map((line) => line.split(' '))
  const masterId = lines.find(([, , flags]) => flags?.includes('myself'))?.[3]
  const ranges = (lines.find(([id]) => id === masterId) ?? []).slice(8).map((range) => range.split('-').map(Number))
  return (key) => {
    const slot = slotOf(key)
    return ranges.some(([from = 0, to = from]) => from <= slot && slot <= to)
  }
}

/** CRC16 (XMODEM) modulo 16,384, as the cluster specification says; for keys without a hash tag. */
export function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % 16_384
}
