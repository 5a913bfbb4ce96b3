import { Redis } from 'ioredis'
import { type IdempotencyEvent, idempotency, singleTenant } from 'once-per-key'
import type { StoreEvent } from 'once-per-key/core'
import { RedisStore, type SendCommand } from 'once-per-key/redis'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../support/gate.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { CLUSTER, SINGLE } from '../../versions/redis-clients.js'
import { claimOf, ownOf } from '../claims.js'
import { REDIS_CLUSTER } from './grounds.js'
import type { OpenClient } from './opened-client.js'

// Real servers and many connections, on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000 })

describe('the eviction policy', () => {
  test.each(['allkeys-lru', 'volatile-ttl'])('%s is an event with a way out, once', async (policy) => {
    await onRedis(['--maxmemory-policy', policy], async (redis) => {
      const { store, events, heard } = observed(redis)
      await store.begin('a', claimOf('t1'))
      await heard
      await store.begin('b', claimOf('t1'))
      await redis.ping()
      expect(events).toEqual([
        { type: 'eviction_policy', policy, advice: expect.stringContaining('Set maxmemory-policy noeviction') },
      ])
    })
  })

  test('noeviction is none', async () => {
    await onRedis([], async (redis) => {
      const { store, events } = observed(redis)
      await store.begin('a', claimOf('t1'))
      await redis.ping() // behind the INFO
      await store.begin('b', claimOf('t1'))
      expect(events).toEqual([])
    })
  })

  test('is unknown where a user may not ask for INFO, and its commands succeed', async () => {
    await onRedis([], async (redis) => {
      await redis.acl('SETUSER', 'app', 'on', '>secret', '~*', '+@all', '-info')
      const app = redis.duplicate({ username: 'app', password: 'secret', enableReadyCheck: false })
      const { store, events, heard } = observed(app)
      expect(await store.begin('a', claimOf('t1'))).toMatchObject({ acquired: true })
      await heard
      expect(events).toEqual([expect.objectContaining({ type: 'eviction_policy', policy: null })])
      app.disconnect()
    })
  })

  test('is asked for behind the first command that got through, not behind one that failed', async () => {
    const sent: string[] = []
    let down = true
    const sendCommand: SendCommand = async (_key, [name]) => {
      sent.push(String(name))
      if (down) throw new Error('down')
      return name === 'INFO' ? 'maxmemory_policy:noeviction' : 1
    }
    const store = new RedisStore({ sendCommand })
    await expect(store.begin('a', claimOf('t1'))).rejects.toThrow('down')
    down = false
    await store.renew('a', { ...ownOf('t1'), leaseMs: 1 })
    await store.renew('a', { ...ownOf('t1'), leaseMs: 1 })
    expect(sent).toEqual(['EVALSHA', 'EVALSHA', 'INFO', 'EVALSHA'])
  })

  test.each([
    ['a rejection', () => Promise.reject(new Error('Connection is closed.'))],
    ['a throw', () => raise(new Error('The client is closed'))],
  ])('is asked for again after %s, which was no answer', async (_name, broken) => {
    const answers = [broken, () => Promise.resolve('maxmemory_policy:allkeys-lru')]
    const events: StoreEvent[] = []
    const store = new RedisStore({
      sendCommand: (_key, [name]) => (name === 'INFO' ? (answers.shift() ?? broken)() : Promise.resolve(1)),
    })
    store.observe((event) => void events.push(event))
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    for (let i = 0; i < 3; i++) {
      await store.renew('a', { ...ownOf('t1'), leaseMs: 1 })
      await turn()
    }
    expect(answers).toEqual([])
    expect(events).toEqual([expect.objectContaining({ policy: 'allkeys-lru' })])
  })

  test('is told to whoever observes later', async () => {
    await onRedis(['--maxmemory-policy', 'allkeys-lru'], async (redis) => {
      const { store, heard } = observed(redis)
      await store.begin('a', claimOf('t1'))
      await heard
      const later: StoreEvent[] = []
      store.observe((event) => void later.push(event))
      expect(later).toEqual([expect.objectContaining({ policy: 'allkeys-lru' })])
    })
  })

  test.each([
    ['a refusal', () => Promise.reject(new Error('NOPERM this user has no permissions'))],
    ['an answer of another kind', () => Promise.resolve(null)],
  ])('is unknown after %s, which fails no command and is not left unhandled', async (_name, info) => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const events: StoreEvent[] = []
    const store = new RedisStore({
      sendCommand: (_key, [name]) => (name === 'INFO' ? info() : Promise.resolve(1)),
    })
    store.observe((event) => void events.push(event))
    expect(await store.renew('a', { ...ownOf('t1'), leaseMs: 1 })).toEqual({ ok: true })
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    await turn()
    await turn()
    process.off('unhandledRejection', unhandled)
    expect(events).toEqual([expect.objectContaining({ policy: null })])
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('reaches every listener, although one throws', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    await onRedis(['--maxmemory-policy', 'allkeys-lfu'], async (redis) => {
      const store = new RedisStore({ client: redis })
      store.observe(() => raise(new Error('a listener of the application')))
      const { opened: heard, open } = gate()
      store.observe(() => open())
      expect(await store.begin('a', claimOf('t1'))).toMatchObject({ acquired: true })
      await heard
    })
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('is heard by onEvent of the middleware', async () => {
    await onRedis(['--maxmemory-policy', 'allkeys-random'], async (redis) => {
      const store = new RedisStore({ client: redis })
      const { opened: heard, open } = gate()
      const events: IdempotencyEvent[] = []
      const onEvent = (event: IdempotencyEvent) => {
        events.push(event)
        open()
      }
      idempotency({ store, scope: singleTenant, onEvent })
      await store.begin('a', claimOf('t1'))
      await heard
      expect(events).toEqual([expect.objectContaining({ type: 'eviction_policy', policy: 'allkeys-random' })])
    })
  })

  test.each(Object.entries(SINGLE))('is read through %s', async (_name, open) => {
    const server = await startRedis('--maxmemory-policy', 'allkeys-lru', '--appendonly', 'no')
    expect(await policySeen(open, server.port)).toBe('allkeys-lru')
    await server.close()
  })

  test('is read through each client of a cluster', async () => {
    const { port, close } = await REDIS_CLUSTER.start()
    await eachNode(port, (node) => node.config('SET', 'maxmemory-policy', 'allkeys-lru'))
    for (const [name, open] of Object.entries(CLUSTER)) {
      expect(await policySeen(open, port), name).toBe('allkeys-lru')
    }
    await close()
  })
})

async function eachNode(port: number, ask: (node: Redis) => Promise<unknown>): Promise<void> {
  const first = new Redis(port)
  const slots = await first.cluster('SLOTS')
  first.disconnect()
  for (const [, , master] of slots) {
    const node = new Redis(Number(master?.[1]))
    await ask(node)
    node.disconnect()
  }
}

async function policySeen(open: OpenClient, port: number): Promise<string | null> {
  const { client, close } = await open(port)
  const store = new RedisStore({ client })
  const seen = new Promise<string | null>((resolve) => {
    store.observe((event) => resolve(event.type === 'eviction_policy' ? event.policy : null))
  })
  await store.begin('k', claimOf('t1'))
  const policy = await seen
  close()
  return policy
}

function observed(redis: Redis) {
  const store = new RedisStore({ client: redis })
  const { opened: heard, open } = gate()
  const events: StoreEvent[] = []
  store.observe((event) => {
    events.push(event)
    open()
  })
  return { store, events, heard }
}

async function onRedis(args: string[], use: (redis: Redis, server: RedisServer) => Promise<void>): Promise<void> {
  const server = await startRedis(...args)
  const redis = new Redis(server.port)
  try {
    await use(redis, server)
  } finally {
    redis.disconnect()
    await server.close()
  }
}

function raise(error: Error): never {
  throw error
}
