import { Redis } from 'ioredis'
import type { RedisServer } from '../../../test/support/redis-server.js'
import type { Choices } from './choices.js'
import { pause } from './faults.js'
import { type Failover, RECORDS } from './ground.js'
import { instant } from './journal.js'
import { contentsOf } from './single-redis.js'

/** For an election, and for a full copy afterwards. */
const PATIENCE_MS = 15_000

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
  const lagsFrom = instant()
  if (choices.chance(0.6)) await lagBehind(replica, master, choices.between(100, 400))
  const diedAt = instant()
  await master.kill()
  replica.signal('SIGCONT')
  // What had reached it is read by then.
  await pause(150)
  const had = await hadOf(replica)
  const kept = await contentsOf(replica.port, RECORDS)
  const isPromoted = await within(PATIENCE_MS, async () => (await roleOf(replica)).startsWith('master'))
  await master.restart()
  await follow?.(master, replica)
  await within(PATIENCE_MS, async () => /^slave.*connected/s.test(await roleOf(master)))
  shard.master = replica
  shard.replica = master
  return { failover: { diedAt, lagsFrom, had, kept }, isPromoted }
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

async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  const until = instant() + ms
  while (instant() < until) {
    if (await holds()) return true
    await pause(50)
  }
  return false
}
