import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { RedisStore, type SendCommand } from 'once-per-key/redis'
import { createSender } from '../../../adapters/redis/client.js'
import { age } from '../../../test/adapters/redis/ageing.js'
import { REDIS, REDIS_CLUSTER, type Ground as Servers } from '../../../test/adapters/redis/grounds.js'
import { fakeClock } from '../../../test/support/fake-clock.js'
import { type Sealing, sealedInTurn } from './sealing.js'

/** A store on trial, for one history: what else it keeps is of other histories. */
export interface Setting {
  readonly store: Store
  /** The shortest duration of a history. */
  readonly unitMs: number
  /** How much time may pass really, by the store's clock, and is no difference. */
  readonly slackMs: number
  /** A key of the history as one of the store's. */
  name(key: string): string
  advance(ms: number): void | Promise<void>
  /** What PTTL says: -1: it never ends; -2: there is no record. */
  lifeLeftMs?(key: string): Promise<number>
  /** Where the answers of `store` are sealed. */
  readonly sealing?: Sealing
}

/** One way to a store: histories may take it at the same time, as many as it has room for. */
export interface Way {
  readonly name: string
  readonly atOnce: number
  readonly unitMs: number
  setting(number: number): Setting
}

/** A kind of store, and the ways to it that share the work. */
export interface Ground {
  readonly name: string
  open(): Promise<{ readonly ways: readonly Way[]; close(): Promise<void> }>
}

export const GROUNDS: readonly Ground[] = [
  { name: 'MemoryStore', open: async () => ({ ways: [memoryWay()], close: async () => {} }) },
  { name: 'Redis', open: () => openServers(REDIS) },
  { name: 'Redis Cluster', open: () => openServers(REDIS_CLUSTER) },
]

const KEYS = ['k1', 'k2', 'k3']

/** One store for all, with room for the records of one history: what has expired must make room. */
function memoryWay(): Way {
  const clock = fakeClock()
  const store = new MemoryStore({ maxEntries: KEYS.length, maxScopeShare: 1, now: clock.now })
  return {
    name: 'calls',
    atOnce: 1,
    unitMs: 1,
    setting(number) {
      clock.advance(LONGEST_RETENTION)
      const rest = { unitMs: 1, slackMs: 0, name: (key: string) => `${number}:${key}`, advance: clock.advance }
      return { ...sealedInTurn(number, store), ...rest }
    },
  }
}

const LONGEST_RETENTION = 200

const CLIENTS = ['ioredis 6', 'node-redis 6']

async function openServers(servers: Servers): ReturnType<Ground['open']> {
  const { port, close } = await servers.start()
  const opened = await Promise.all(
    CLIENTS.map(async (name) => {
      const open = servers.clients[name]
      if (open === undefined) throw new Error(`There is no client ${name}.`)
      return { name, ...(await open(port)) }
    }),
  )
  return {
    ways: opened.map(({ name, client }) => redisWay(name, client)),
    async close() {
      for (const client of opened) client.close()
      await close()
    },
  }
}

/** Redis' clock cannot be moved: records are made older. A unit is so long that what passes really decides nothing. */
const UNIT_MS = 60_000

function redisWay(name: string, client: unknown): Way {
  const send = createSender(client)
  if (send === null) throw new Error(`${name} is no client that is known.`)
  return {
    name,
    atOnce: 20,
    unitMs: UNIT_MS,
    setting(number) {
      const prefix = `${name.replaceAll(' ', '-')}-${number}:`
      return {
        // biome-ignore lint/suspicious/noExplicitAny: senderOf has looked at it
        ...sealedInTurn(number, new RedisStore({ client: client as any, prefix })),
        unitMs: UNIT_MS,
        slackMs: UNIT_MS / 2,
        name: (key) => key,
        advance: async (ms) => void (await Promise.all(KEYS.map((key) => age(send, prefix + key, ms)))),
        lifeLeftMs: (key) => lifeLeftMs(send, prefix + key),
      }
    },
  }
}

async function lifeLeftMs(send: SendCommand, key: string): Promise<number> {
  return Number(await send(key, ['EVAL', "return redis.call('PTTL', KEYS[1])", '1', key]))
}
