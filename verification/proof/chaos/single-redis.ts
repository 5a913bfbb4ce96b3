import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startFaultProxy } from '../../../test/support/fault-proxy.js'
import { startRedis } from '../../../test/support/redis-server.js'
import { type FaultLane, pause } from './faults.js'
import type { Ground } from './ground.js'
import { linkFaults } from './link-faults.js'

/** What a process has written outlives its death, synced or not: only a machine's death is another matter. */
export const UNSYNCED = ['--appendfsync', 'no'] as const

/** One Redis, which each service reaches by a link of its own. Its append-only file and its log are kept in the folder. */
export async function singleRedis(folder: string, services: number, policy: string): Promise<Ground> {
  const home = join(folder, 'redis')
  mkdirSync(home)
  const redis = await startRedis('--dir', home, '--logfile', join(home, 'redis.log'), ...UNSYNCED)
  const links = await Promise.all(Array.from({ length: services }, () => startFaultProxy(redis.port)))
  const server: FaultLane = {
    name: 'redis',
    leastPauseMs: 500,
    mostPauseMs: 1_100,
    faults: [
      { name: 'restarts of Redis', strike: () => redis.restart() },
      {
        name: 'pauses of Redis',
        async strike(choices) {
          redis.signal('SIGSTOP')
          await pause(choices.between(350, 800))
          redis.signal('SIGCONT')
        },
      },
    ],
  }
  return {
    access: 'a single Redis',
    portsOf: links.map(({ port }) => [port]),
    lanes: [server, ...linkFaults(links, policy)],
    failovers: [],
    async heal() {
      for (const link of links) {
        link.disarm()
        link.delay(0)
        link.heal()
      }
    },
    contents: (prefix) => contentsOf(redis.port, prefix),
    async close() {
      await Promise.all(links.map((link) => link.close()))
      await redis.close()
    },
  }
}

/** What one node has under a prefix. */
export async function contentsOf(port: number, prefix: string): Promise<ReadonlyMap<string, Buffer>> {
  const client = new Redis(port, { readOnly: true })
  try {
    const keys = await client.keys(`${prefix}*`)
    const values = await Promise.all(keys.map((key) => client.getBuffer(key)))
    return new Map(keys.flatMap((key, i) => (values[i] ? [[key, values[i]] as const] : [])))
  } finally {
    client.disconnect()
  }
}
