import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Redis } from 'ioredis'
import type { CommandTrace, IdempotencyContext, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { runner } from 'once-per-key/run'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newDatabase } from '../../test/support/postgres-server.js'
import { startRedis } from '../../test/support/redis-server.js'
import { countTrips } from './trips.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** A store, and what its server has heard so far; `undefined`: it has none. */
interface Counted {
  readonly store: Store
  heard(): Promise<number> | undefined
  /** Of a command: 1, unless it is here. Postgres reads the row, and writes only what is still as it was read. */
  readonly trips?: Readonly<Record<string, number>>
  /** Of a claim that takes over what a failed attempt has left. */
  readonly takeoverTrips?: number
  close?(): Promise<void>
}

const OPENED: Readonly<Record<string, () => Promise<Counted>>> = {
  memory: async () => ({ store: new MemoryStore(), heard: () => undefined }),
  async redis() {
    const server = await startRedis('--appendonly', 'no')
    const client = new Redis(server.port)
    const calls = async () => {
      const stats = await client.info('commandstats')
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
    }
    const close = async () => {
      client.disconnect()
      await server.close()
    }
    return { store: new RedisStore({ client }), heard: calls, close }
  },
  async postgres() {
    const { url } = await newDatabase()
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    const trips = countTrips(pool)
    const store = new PostgresStore({ pool, sweeps: false })
    await store.migrate()
    return {
      store,
      heard: async () => trips(),
      trips: { step: 2, release: 2 },
      takeoverTrips: 2,
      close: () => pool.end(),
    }
  },
}

describe.each(Object.keys(OPENED))('on %s', (name) => {
  let counted: Counted
  let once: ReturnType<typeof runner>

  beforeAll(async () => {
    counted = await (OPENED[name] as () => Promise<Counted>)()
    once = runner({ store: counted.store, name: 'jobs', onEvent: () => {} })
    await run('what is sent once', (context) => context.step('charge', () => 1))
  })
  afterAll(() => counted.close?.())

  const run = (key: string, work: (context: IdempotencyContext) => unknown) =>
    once({ scope: 'acme', key, input: null }, async (context) => (await work(context)) as number)

  /** The commands that the engine sends meanwhile. Its server has heard as many as these take. */
  async function commandsOf(work: () => Promise<unknown>, isTakeover = false): Promise<readonly string[]> {
    const sent: string[] = []
    const hear = (message: unknown) => void sent.push((message as CommandTrace).command)
    const before = await counted.heard()
    subscribe('tracing:once-per-key:command:start', hear)
    await work().catch(() => {})
    unsubscribe('tracing:once-per-key:command:start', hear)
    const after = await counted.heard()
    const { trips = {}, takeoverTrips = 1 } = counted
    const tripsOf = (command: string) => (command === 'begin' && isTakeover ? takeoverTrips : (trips[command] ?? 1))
    if (before !== undefined) expect(after).toBe(before + sent.reduce((sum, command) => sum + tripsOf(command), 0))
    return sent
  }

  test('an operation without steps sends a claim and a completion', async () => {
    expect(await commandsOf(() => run('none', () => 1))).toEqual(['begin', 'complete'])
  })

  test('a step is two commands: its beginning, and its result', async () => {
    const one = await commandsOf(() => run('one', (context) => context.step('charge', () => 1)))
    expect(one).toEqual(['begin', 'step', 'step', 'complete'])
    const two = await commandsOf(() =>
      run('two', async (context) => {
        await context.step('charge', () => 1)
        await context.step('book', () => 1)
      }),
    )
    expect(two).toEqual(['begin', 'step', 'step', 'step', 'step', 'complete'])
  })

  test('a step that an earlier attempt has recorded costs no command', async () => {
    const work = vi.fn(() => 1)
    const dies = async (context: IdempotencyContext) => {
      await context.step('charge', work)
      throw new Error('The attempt fails after its step.')
    }
    expect(await commandsOf(() => run('resumed', dies))).toEqual(['begin', 'step', 'step', 'release'])
    const resumed = await commandsOf(() => run('resumed', (context) => context.step('charge', work)), true)
    expect(resumed).toEqual(['begin', 'complete'])
    expect(work).toHaveBeenCalledOnce()
  })
})
