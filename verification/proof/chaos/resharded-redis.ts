import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startRedisCluster } from '../../../test/support/redis-cluster.js'
import type { Choices } from './choices.js'
import { slotOf } from './cluster-redis.js'
import { type FaultLane, pause } from './faults.js'
import { type Ground, RECORDS } from './ground.js'
import { contentsOf, UNSYNCED } from './single-redis.js'

/** Of slots with records, moved one after the other. */
const AT_A_TIME = 15
const LONGEST_STAY_MS = 30

interface Node {
  readonly id: string
  readonly port: number
  readonly client: Redis
}

/** Three masters, between which slots move while their records are in use. Nothing may be lost by it. */
export async function reshardedRedis(folder: string, services: number): Promise<Ground> {
  const homes = Array.from({ length: 3 }, (_, node) => join(folder, `node-${node}`))
  for (const home of homes) mkdirSync(home)
  const cluster = await startRedisCluster({
    argumentsOf: (node) => ['--dir', homes[node] ?? '', '--logfile', join(homes[node] ?? '', 'redis.log'), ...UNSYNCED],
  })
  const nodes = await Promise.all(
    cluster.nodes.map(async ({ port }): Promise<Node> => {
      const client = new Redis(port)
      return { id: String(await client.cluster('MYID')), port, client }
    }),
  )

  async function reshard(choices: Choices): Promise<boolean> {
    const [from, to] = choices.shuffled(nodes) as [Node, Node]
    const keys = await from.client.keys(`${RECORDS}*`)
    const slots = new Set(choices.shuffled(keys).slice(0, AT_A_TIME).map(slotOf))
    let moved = 0
    for (const slot of slots) moved += await move(slot, from, to, nodes, choices)
    return moved > 0
  }

  const lane: FaultLane = {
    name: 'resharding',
    leastPauseMs: 50,
    mostPauseMs: 300,
    faults: [{ name: 'slots moved with their records', strike: reshard }],
  }
  const ports = nodes.map(({ port }) => port)
  return {
    access: 'a cluster',
    portsOf: Array.from({ length: services }, () => ports),
    lanes: [lane],
    failovers: [],
    heal: async () => {},
    async contents(prefix) {
      const all = await Promise.all(ports.map((port) => contentsOf(port, prefix)))
      return new Map(all.flatMap((each) => [...each]))
    },
    async close() {
      for (const { client } of nodes) client.disconnect()
      await cluster.close()
    },
  }
}

/** As the cluster specification says; resolves to how many keys went along. Meanwhile clients are redirected by ASK. */
async function move(slot: number, from: Node, to: Node, nodes: readonly Node[], choices: Choices): Promise<number> {
  await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id)
  await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id)
  let moved = 0
  while (true) {
    const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[]
    if (keys.length === 0) break
    await pause(choices.between(0, LONGEST_STAY_MS))
    await from.client.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys)
    moved += keys.length
    await pause(choices.between(0, LONGEST_STAY_MS))
  }
  for (const { client } of [to, ...nodes.filter((node) => node !== to)]) {
    await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id)
  }
  return moved
}
