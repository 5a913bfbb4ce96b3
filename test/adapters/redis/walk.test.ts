import { Redis } from 'ioredis'
import type { Store } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { claimOf, ownOf } from '../claims.js'
import { REDIS, REDIS_CLUSTER, REDIS_SENTINEL } from './grounds.js'

// Real servers and many connections, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

const KEYS = Array.from({ length: 40 }, (_, i) => `acme:lost-${i}`)

/** Many records, of which some failed after they may have had their effect. */
async function fill(store: Store): Promise<void> {
  const lost = { ...ownOf('owner'), uncertain: true, failedMs: 60_000 }
  await Promise.all(KEYS.map((key) => store.release(key, lost)))
  await Promise.all(Array.from({ length: 800 }, (_, i) => store.begin(`acme:live-${i}`, claimOf(`t${i}`))))
}

/** All that a walk lists, and how many steps it took. */
async function walked(store: Store) {
  const found = new Set<string>()
  let steps = 0
  for (let from: string | null = null; ; ) {
    const step: { records: readonly { key: string }[]; next: string | null } | undefined = await store.list?.(from)
    steps++
    for (const { key } of step?.records ?? []) found.add(key)
    from = step?.next ?? null
    if (from === null) return { found: [...found].toSorted(), steps }
  }
}

describe.each([REDIS, REDIS_CLUSTER, REDIS_SENTINEL])('a walk on $name', async ({ start, clients }) => {
  const { port, close } = await start()
  afterAll(close)

  test.for(Object.entries(clients))('comes across all of them, in several steps: %s', async ([, open]) => {
    const { client, close } = await open(port)
    try {
      // As it puts its own prefix before all keys, and has a database of its own.
      await fill(new RedisStore({ client }))
    } finally {
      close()
    }
    const later = await open(port)
    try {
      const { found, steps } = await walked(new RedisStore({ client: later.client }))
      expect(found).toEqual(KEYS.toSorted())
      expect(steps).toBeGreaterThan(3)
    } finally {
      later.close()
    }
  })
})

describe('a walk', async () => {
  const server = await REDIS.start()
  const client = new Redis(server.port)
  afterAll(async () => {
    client.disconnect()
    await server.close()
  })
  const sendCommand = (_key: string, [name, ...args]: readonly (string | Buffer)[]) =>
    client.callBuffer(String(name), ...args)

  test('passes over what is no record, of another prefix, or of a later version', async () => {
    const store = new RedisStore({ client, prefix: 'w[a*/' })
    const lost = { ...ownOf('owner'), uncertain: true, failedMs: 60_000 }
    await store.release('acme:lost', lost)
    await new RedisStore({ client, prefix: 'waa/' }).release('acme:other', lost)
    await client.set('w[a*/acme:later', '2 a later version')
    await client.hset('w[a*/acme:hash', 'a', 'b')
    expect((await walked(store)).found).toEqual(['acme:lost'])
  })

  test('goes over a `sendCommand` too', async () => {
    const store = new RedisStore({ sendCommand, prefix: 'sent:' })
    await fill(store)
    expect((await walked(store)).found).toEqual(KEYS.toSorted())
  })

  test('that could not reach every server is refused', async () => {
    const inCluster = (key: string, args: readonly (string | Buffer)[]) =>
      args[0] === 'INFO' ? Promise.resolve(Buffer.from('# Cluster\r\ncluster_enabled:1\r\n')) : sendCommand(key, args)
    await expect(new RedisStore({ sendCommand: inCluster }).list(null)).rejects.toThrow(/needs a `client`/)
  })
})
