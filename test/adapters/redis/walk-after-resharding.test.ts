import { Cluster, Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startRedisCluster } from '../../support/redis-cluster.js'
import { freePort, startRedis } from '../../support/redis-server.js'
import { CLUSTER } from '../../versions/redis-clients.js'
import { ownOf } from '../claims.js'
import { nodes } from './opened-client.js'

// Real servers and many connections, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const LOST = { ...ownOf('owner'), uncertain: true, failedMs: 1 }
const KEYS = Array.from({ length: 100 }, (_, i) => `acme:lost-${i}`)

describe('after slots have moved to a new master', async () => {
  const cluster = await startRedisCluster()
  const ports = cluster.nodes.map(({ port }) => port)
  const early = await Promise.all(
    Object.entries(CLUSTER).map(async ([name, open]) => ({ name, ...(await open(ports[0] as number)) })),
  )
  for (const { client } of early) await new RedisStore({ client }).list(null)
  const fourth = await withSlots(ports, 12_000, 14_000)
  const late = new Cluster(nodes(ports[0] as number))
  await Promise.all(KEYS.map((key) => new RedisStore({ client: late }).release(key, LOST)))
  afterAll(async () => {
    late.disconnect()
    for (const { close } of early) close()
    await fourth.close()
    await cluster.close()
  })

  test('a client that knows it walks over all records', async () => {
    expect(await walked(new RedisStore({ client: late }))).toEqual(KEYS.toSorted())
  })

  test.each(early)('$name, which has not heard of it, does not pass its records over', async ({ client }) => {
    const store = new RedisStore({ client })
    await expect(walked(store)).rejects.toThrow('those that it knows own 14383 of 16384 slots')
    await expect(store.listScope('acme', null)).rejects.toThrow('does not know every master')
    for (const key of KEYS) await store.inspect(key) // Some are redirected: it hears of it.
    await vi.waitFor(() => walked(store))
  })
})

describe('while a slot is on its way to another master', async () => {
  const cluster = await startRedisCluster()
  const clients = cluster.nodes.map(({ port }) => new Redis(port))
  const ids = await Promise.all(clients.map((client) => client.cluster('MYID')))
  afterAll(async () => {
    for (const client of clients) client.disconnect()
    await cluster.close()
  })

  test.each(Object.entries(CLUSTER))('no walk goes on, which might pass it over: %s', async (_name, open) => {
    const { client, close } = await open(cluster.nodes[0]?.port as number)
    onTestFinished(close)
    const store = new RedisStore({ client })
    await Promise.all(KEYS.map((key) => store.release(key, LOST)))
    const { next } = await store.list(null)
    await clients[2]?.call('CLUSTER', 'SETSLOT', 16_000, 'MIGRATING', String(ids[0]))
    await expect(store.list(next)).rejects.toThrow('Slots of the cluster are on their way')
    await clients[2]?.call('CLUSTER', 'SETSLOT', 16_000, 'STABLE')
    expect(await walked(store)).toEqual(KEYS.toSorted())
  })
})

async function walked(store: RedisStore): Promise<readonly string[]> {
  const found = new Set<string>()
  for (let from: string | null = null; ; ) {
    const { records, next } = await store.list(from)
    for (const { key } of records) found.add(key)
    if (next === null) return [...found].toSorted()
    from = next
  }
}

/** A node more, which takes these slots: its epoch is higher than that of their owner, which so gives them up. */
async function withSlots(ports: readonly number[], first: number, last: number) {
  const busPort = await freePort()
  const server = await startRedis('--cluster-enabled', 'yes', '--cluster-port', `${busPort}`, '--appendonly', 'no')
  const clients = [server.port, ...ports].map((port) => new Redis(port))
  const [own, other] = clients as [Redis, Redis]
  await own.cluster('SET-CONFIG-EPOCH', 9)
  await other.call('CLUSTER', 'MEET', '127.0.0.1', `${server.port}`, `${busPort}`)
  await vi.waitFor(async () => expect(await own.cluster('INFO')).toContain('cluster_slots_ok:16384'), 30_000)
  await own.call('CLUSTER', 'DELSLOTSRANGE', first, last)
  await own.call('CLUSTER', 'ADDSLOTSRANGE', first, last)
  const told = `:${server.port}@${busPort}`
  for (const client of clients) {
    await vi.waitFor(async () => {
      const lines = String(await client.cluster('NODES')).split('\n')
      expect(lines.find((line) => line.includes(told))).toMatch(new RegExp(` ${first}-${last}$`))
    }, 30_000)
    client.disconnect()
  }
  return server
}
