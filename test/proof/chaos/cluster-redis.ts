import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startRedisCluster } from '../../support/redis-cluster.js'
import type { RedisServer } from '../../support/redis-server.js'
import type { Choices } from './choices.js'
import { type FaultLane, pause } from './faults.js'
import { type Failover, type Ground, RECORDS } from './ground.js'
import { instant } from './journal.js'
import { contentsOf, UNSYNCED } from './single-redis.js'

const NODE_TIMEOUT_MS = 1_000
/** For an election, and for a full copy afterwards. */
const PATIENCE_MS = 15_000

/** Three masters, three replicas. Masters die, and some replicas lag behind when they do. */
export async function clusterRedis(folder: string, services: number): Promise<Ground> {
  const homes = Array.from({ length: 6 }, (_, node) => join(folder, `node-${node}`))
  for (const home of homes) mkdirSync(home)
  const { nodes, replicas, close } = await startRedisCluster({
    withReplicas: true,
    argumentsOf: (node) => settings(homes[node] ?? ''),
  })
  const shards = nodes.map((master, i) => ({ master, replica: replicas[i] as RedisServer, slots: [] as number[] }))
  const failovers: Failover[] = []

  async function failOver(choices: Choices): Promise<boolean> {
    const shard = choices.one(shards)
    const { master, replica } = shard
    if (choices.chance(0.6)) await lagBehind(replica, master, choices.between(100, 400))
    const diedAt = instant()
    await master.kill()
    replica.signal('SIGCONT')
    // What had reached it is read by then.
    await pause(150)
    const had = await ownKeys(replica)
    const kept = await contentsOf(replica.port, RECORDS)
    const promoted = await within(PATIENCE_MS, async () => (await roleOf(replica)).startsWith('master'))
    await master.restart()
    await within(PATIENCE_MS, async () => /^slave.*connected/s.test(await roleOf(master)))
    failovers.push({ diedAt, had, kept })
    shard.master = replica
    shard.replica = master
    return promoted
  }

  const lane: FaultLane = {
    name: 'failovers',
    leastPauseMs: 2_000,
    mostPauseMs: 4_000,
    faults: [{ name: 'failovers', strike: failOver }],
  }
  const ports = [...nodes, ...replicas].map(({ port }) => port)
  return {
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

/** What its master confirms from now on does not reach the replica: as when the network between them fails first. */
async function lagBehind(replica: RedisServer, master: RedisServer, ms: number): Promise<void> {
  replica.signal('SIGSTOP')
  await asked(master, (client) => client.call('CLIENT', 'KILL', 'TYPE', 'replica'))
  await pause(ms)
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
function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % 16_384
}

async function roleOf(node: RedisServer): Promise<string> {
  return asked(node, async (client) => String(await client.role()))
}

async function asked<T>({ port }: RedisServer, ask: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(port)
  try {
    return await ask(client)
  } finally {
    client.disconnect()
  }
}

async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  const until = instant() + ms
  while (instant() < until) {
    if (await holds()) return true
    await pause(50)
  }
  return false
}
