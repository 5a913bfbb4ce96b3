import { Redis } from 'ioredis'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { newSealingKey, sealed } from 'once-per-key/sealed'
import { storeLaws } from 'once-per-key/testing'
import { Pool } from 'pg'
import { afterAll, describe, test, vi } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { newDatabase } from '../../support/postgres-server.js'
import { startRedis } from '../../support/redis-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { DRIVER_NAMES } from '../sqlite/drivers.js'
import { openStore } from '../sqlite/open-store.js'

// The laws wait for real leases to lapse, each on keys of its own: together they wait no longer than one.
vi.setConfig({ maxConcurrency: 40, testTimeout: 60_000 })

const COMPRESSED = ['compressed', true] as const
const AS_IT_IS = ['as it is', false] as const

describe.each(thoroughly([COMPRESSED], [COMPRESSED, AS_IT_IS]))(
  'a sealed store obeys the store laws, %s',
  (_name, compress) => {
    const keys = [newSealingKey(), newSealingKey()]
    const around = (store: Store) => sealed(store, { keys, compress })

    describe('in memory', () => {
      const open = async () => {
        const { now, advance } = fakeClock()
        return { store: around(new MemoryStore({ now })), advance }
      }
      storeLaws(test, open, { operable: true, listable: true, forgetful: true, stepped: true })
    })

    describe.each(DRIVER_NAMES)('on SQLite, by %s', (driver) => {
      const open = async () => {
        const { now, advance } = fakeClock()
        return { store: around(openStore(driver, { now }).store), advance }
      }
      storeLaws(test, open, { operable: true, listable: true, forgetful: true, stepped: true })
    })

    describe('on Redis', async () => {
      const server = await startRedis()
      const client = new Redis(server.port)
      afterAll(async () => {
        client.disconnect()
        await server.close()
      })
      storeLaws(test.concurrent, async () => ({ store: around(new RedisStore({ client })) }), {
        operable: true,
        listable: true,
        forgetful: true,
        stepped: true,
      })
    })

    describe('on Postgres', async () => {
      const { url } = await newDatabase()
      const pool = new Pool({ connectionString: url, max: 10 })
      afterAll(() => pool.end())
      await new PostgresStore({ pool }).migrate()
      const open = async () => ({ store: around(new PostgresStore({ pool, sweeps: false })) })
      storeLaws(test.concurrent, open, { operable: true, listable: true, forgetful: true, stepped: true })
    })
  },
)
