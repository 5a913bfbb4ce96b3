import { GlideClient, GlideClusterClient, Logger } from '@valkey/valkey-glide'
import { RedisStore } from 'once-per-key/redis'
import { storeLaws } from 'once-per-key/testing'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { claimOf } from '../../../test/adapters/claims.js'
import { startRedisCluster } from '../../../test/support/redis-cluster.js'
import { startRedis } from '../../../test/support/redis-server.js'
import { sendBy, sendByCluster } from '../../recipes/stores/glide.js'

// The laws wait for real leases to lapse, each on keys of its own.
vi.setConfig({ maxConcurrency: 40 })

// It prints a line for each script that a server does not have.
Logger.init('error')

/** Of a machine that may be busy. */
const OPTIONS = { requestTimeout: 20_000, advancedConfiguration: { connectionTimeout: 20_000 } }
const LAWS = { operable: true, stepped: true }
const host = '127.0.0.1'

describe('the recipe for Valkey GLIDE', async () => {
  const server = await startRedis('--appendonly', 'no')
  const client = await GlideClient.createClient({ addresses: [{ host, port: server.port }], ...OPTIONS })
  afterAll(async () => {
    client.close()
    await server.close()
  })

  let stores = 0
  const openStore = () => new RedisStore({ sendCommand: sendBy(client), prefix: `store-${++stores}:` })
  storeLaws(test.concurrent, async () => ({ store: openStore() }), {
    ...LAWS,
    listable: true,
    forgetful: true,
  })

  test('gives a server that has lost the scripts their texts again', async () => {
    const store = openStore()
    expect(await store.begin('before', claimOf('t1'))).toMatchObject({ acquired: true })
    await client.customCommand(['SCRIPT', 'FLUSH'])
    expect(await store.begin('behind', claimOf('t1'))).toMatchObject({ acquired: true })
  })
})

describe('the recipe for a cluster', async () => {
  const { nodes, close } = await startRedisCluster()
  const addresses = nodes.map(({ port }) => ({ host, port }))
  const client = await GlideClusterClient.createClient({ addresses, ...OPTIONS })
  afterAll(async () => {
    client.close()
    await close()
  })

  let stores = 0
  storeLaws(
    test.concurrent,
    async () => ({ store: new RedisStore({ sendCommand: sendByCluster(client), prefix: `store-${++stores}:` }) }),
    LAWS,
  )
})
