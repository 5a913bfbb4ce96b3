import { Redis } from 'ioredis'
import type { RedisServer } from '../../../test/support/redis-server.js'
import type { Choices } from './choices.js'
import { pause } from './faults.js'
import { type Failover, RECORDS } from './ground.js'
import { instant } from './journal.js'
import { contentsOf } from './single-redis.js'

/** For an election, and for a full copy afterwards: fifteen seconds on an idle machine. */
const MOST_LOOKS = 300

/** A master and its replica. They change their places. */
export interface Shard {
  master: RedisServer
  replica: RedisServer
}

/** The master dies, and its replica, which lags behind or not, takes over. `hadOf`: which keys are the replica's shard's. */
export async function failOver(
  shard: Shard,
  choices: Choices,
  hadOf: (replica: RedisServer) => Promise<Failover['had']>,
  follow?: (replica: RedisServer, master: RedisServer) => Promise<unknown>,
): Promise<{ readonly failover: Failover; readonly isPromoted: boolean }> {
  const { master, replica } = shard
  const lagsFrom = await reachedBy(replica, master)
  if (choices.chance(0.6)) await lagBehind(replica, master, choices.between(100, 400))
  const diedAt = instant()
  await master.kill()
  replica.signal('SIGCONT')
  // What had reached it is read by then.
  await pause(150)
  const had = await hadOf(replica)
  const kept = await contentsOf(replica.port, RECORDS)
  let replicaUntil: number | undefined
  const isPromoted = await comes(async () => {
    const before = instant()
    const isMaster = (await roleOf(replica)).startsWith('master')
    replicaUntil = isMaster ? (replicaUntil ?? before) : before
    return isMaster
  })
  const failover = { diedAt, replicaUntil: replicaUntil ?? diedAt, lagsFrom, had, kept }
  await master.restart()
  if (!isPromoted) return { failover, isPromoted }
  await follow?.(master, replica)
  await comes(async () => /^slave.*connected/s.test(await roleOf(master)))
  shard.master = replica
  shard.replica = master
  return { failover, isPromoted }
}

/** Until when all that the master had confirmed is known to have reached the replica. */
async function reachedBy(replica: RedisServer, master: RedisServer): Promise<number> {
  const at = instant()
  const [its, offset = 0] = (await asked(master, (client) => client.role())) as unknown as [string, number]
  if (its !== 'master') return 0
  const hasReached = await comes(async () => {
    const [role, , , , reached = 0] = (await asked(replica, (client) => client.role())) as unknown as [
      ...[role: string, host: string, port: number, state: string, reached: number],
    ]
    return role === 'slave' && reached >= offset
  })
  return hasReached ? at : 0
}

/** What its master confirms from now on does not reach the replica: as when the network between them fails first. */
async function lagBehind(replica: RedisServer, master: RedisServer, ms: number): Promise<void> {
  replica.signal('SIGSTOP')
  await asked(master, (client) => client.call('CLIENT', 'KILL', 'TYPE', 'replica'))
  await pause(ms)
}

async function roleOf(node: RedisServer): Promise<string> {
  return asked(node, async (client) => String(await client.role()))
}

export async function asked<T>({ port }: { readonly port: number }, ask: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(port)
  try {
    return await ask(client)
  } finally {
    client.disconnect()
  }
}

async function comes(holds: () => Promise<boolean>): Promise<boolean> {
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    if (await holds()) return true
    await pause(50)
  }
  return false
}
