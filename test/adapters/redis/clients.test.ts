import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Store } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { REDIS, REDIS_CLUSTER, REDIS_SENTINEL } from './grounds.js'
import type { OpenClient } from './opened-client.js'

// Real servers and many connections, on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000 })

describe.each([REDIS, REDIS_CLUSTER, REDIS_SENTINEL])('on $name', async ({ start, clients }) => {
  const { port, close } = await start()
  afterAll(close)

  test.for(Object.entries(clients))('%s claims, replays each byte, releases and fences', async ([, open]) => {
    await withStore(open, port, async (store) => {
      // Enough keys at once for each node of a cluster, and for whatever a client does with commands of one tick.
      await Promise.all(Array.from({ length: 24 }, () => claimsReplaysReleasesFences(store, randomUUID())))
    })
  })
})

describe('sendCommand', () => {
  test('stands for any other client: it is given the key, and answers with Buffers', async () => {
    const server = await startRedis()
    const client = new Redis(server.port)
    const keys = new Set<string>()
    const store = new RedisStore({
      prefix: 'p:',
      sendCommand: (key, [name, ...args]) => {
        keys.add(key)
        return client.callBuffer(String(name), ...args)
      },
    })
    await claimsReplaysReleasesFences(store, 'k')
    expect([...keys]).toEqual(['p:k:completed', 'p:k:failed'])
    expect((await client.keys('*')).sort()).toEqual(['p:k:completed', 'p:k:failed'])
    client.disconnect()
    await server.close()
  })
})

async function withStore(open: OpenClient, port: number, use: (store: Store) => Promise<void>): Promise<void> {
  const { client, close } = await open(port)
  try {
    await use(new RedisStore({ client }))
  } finally {
    close()
  }
}

async function claimsReplaysReleasesFences(store: Store, key: string): Promise<void> {
  const completed = `${key}:completed`
  expect(await store.begin(completed, claimOf('t1'))).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
  const inFlight = { state: 'in-flight', fingerprint: 'f', attempt: 1, uncertain: false }
  expect(await store.begin(completed, claimOf('t2'))).toEqual({
    acquired: false,
    record: { ...inFlight, leaseRemainingMs: expect.any(Number) },
  })
  expect(await store.renew(completed, { ...ownOf('t1'), leaseMs: 60_000 })).toEqual({ ok: true })
  expect(await store.complete(completed, { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })
  const record = { state: 'completed', fingerprint: 'f', attempt: 1, answer: ANSWER }
  expect(plain(await store.begin(completed, claimOf('t3')))).toEqual({ acquired: false, record })
  expect(plain(await store.release(completed, { ...ownOf('t2'), failedMs: 1 }))).toEqual({ ok: false, record })

  const failed = `${key}:failed`
  await store.begin(failed, claimOf('t1'))
  expect(await store.release(failed, { ...ownOf('t1'), failedMs: 60_000 })).toEqual({ ok: true })
  const again = await store.begin(failed, claimOf('t2', 'g'))
  expect(again).toEqual({ acquired: true, attempt: 2, previousOutcome: 'failed' })
}

/** Buffers become plain bytes. */
function plain<T>(reply: T): T {
  return structuredClone(reply)
}
