import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SENTINEL_NAME, startSentinel } from '../../../test/adapters/redis/redis-sentinel.js'
import { startRedis } from '../../../test/support/redis-server.js'
import type { Choices } from './choices.js'
import { asked, failOver, type Shard } from './fail-over.js'
import type { FaultLane } from './faults.js'
import type { Failover, Ground } from './ground.js'
import { contentsOf, UNSYNCED } from './single-redis.js'

const SENTINELS = 3
const QUORUM = 2
/** A sentinel votes again for the same master after twice `failover-timeout`. */
const SETTINGS = { 'down-after-milliseconds': 600, 'failover-timeout': 1_500 }

/** A master and a replica that three sentinels watch. The master dies, and the replica, which may lag behind, takes over. */
export async function sentinelRedis(folder: string, services: number): Promise<Ground> {
  const home = (name: string) => {
    const path = join(folder, name)
    mkdirSync(path)
    return ['--dir', path, '--logfile', join(path, 'redis.log'), ...UNSYNCED]
  }
  const master = await startRedis(...home('one'))
  const replica = await startRedis(...home('other'), '--replicaof', '127.0.0.1', `${master.port}`)
  const shard: Shard = { master, replica }
  await asked(replica, async (client) => {
    while (!String(await client.info('replication')).includes('master_link_status:up')) await soon()
  })
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, () => startSentinel(master.port, QUORUM, SETTINGS)),
  )
  await Promise.all(sentinels.map((sentinel) => asked(sentinel, knowsTheOthers)))
  const failovers: Failover[] = []

  async function strike(choices: Choices): Promise<boolean> {
    const { failover, isPromoted } = await failOver(
      shard,
      choices,
      async () => () => true,
      (replica, master) => asked(replica, (client) => demote(client, master.port)),
    )
    failovers.push(failover)
    return isPromoted
  }

  const lane: FaultLane = {
    name: 'failovers',
    leastPauseMs: 1_500,
    mostPauseMs: 3_000,
    faults: [{ name: 'failovers by sentinels', strike }],
  }
  const ports = sentinels.map(({ port }) => port)
  return {
    access: 'sentinels',
    portsOf: Array.from({ length: services }, () => ports),
    lanes: [lane],
    failovers,
    heal: async () => {},
    contents: (prefix) => contentsOf(shard.master.port, prefix),
    async close() {
      await Promise.all(sentinels.map((sentinel) => sentinel.close()))
      await Promise.all([master.close(), replica.close()])
    },
  }
}

/** As a sentinel does it: clients that took it for the master, as it came back, must ask anew who is. */
async function demote(client: Client, masterPort: number): Promise<void> {
  await client.replicaof('127.0.0.1', masterPort)
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal')
}

type Client = Parameters<Parameters<typeof asked>[1]>[0]

/** Sentinels find each other, and the replica, through the master. */
async function knowsTheOthers(client: Client): Promise<void> {
  const countOf = async (what: string) => ((await client.call('SENTINEL', what, SENTINEL_NAME)) as unknown[]).length
  while ((await countOf('sentinels')) < SENTINELS - 1 || (await countOf('replicas')) < 1) await soon()
}

function soon(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20))
}
