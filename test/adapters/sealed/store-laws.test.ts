import { Redis } from 'ioredis'
import { createPool } from 'mysql2/promise'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { MySqlStore } from 'once-per-key/mysql'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { newSealingKey, sealed } from 'once-per-key/sealed'
import { storeLaws } from 'once-per-key/testing'
import { Pool } from 'pg'
import { afterAll, describe, test, vi } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { newMariaDbDatabase } from '../../support/mariadb-server.js'
import { newDatabase } from '../../support/postgres-server.js'
import { startRedis } from '../../support/redis-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { DRIVER_NAMES } from '../sqlite/drivers.js'
import { openStore } from '../sqlite/open-store.js'

// The laws wait for real leases to lapse, each on keys of its own: together they wait no longer than one. MySqlStore, which is tried
// at full length, refuses a command that waits for a connection for long: no more at a time than a busy machine serves.
vi.setConfig({ maxConcurrency: thoroughly(40, 15), testTimeout: 60_000 })

type Around = (store: Store) => Store

interface Place {
  readonly where: string
  obeys(around: Around): void | Promise<void>
}

const EVERY_LAW = { operable: true, listable: true, forgetful: true, stepped: true } as const

const IN_MEMORY = {
  where: 'in memory',
  obeys(around: Around) {
    const open = async () => {
      const { now, advance } = fakeClock()
      return { store: around(new MemoryStore({ now })), advance }
    }
    storeLaws(test, open, EVERY_LAW)
  },
}

const ON_SQLITE = {
  where: 'on SQLite',
  obeys(around: Around) {
    describe.each(DRIVER_NAMES)('by %s', (driver) => {
      const open = async () => {
        const { now, advance } = fakeClock()
        return { store: around(openStore(driver, { now }).store), advance }
      }
      storeLaws(test, open, EVERY_LAW)
    })
  },
}

const ON_REDIS = {
  where: 'on Redis',
  async obeys(around: Around) {
    const server = await startRedis()
    const client = new Redis(server.port)
    afterAll(async () => {
      client.disconnect()
      await server.close()
    })
    storeLaws(test.concurrent, async () => ({ store: around(new RedisStore({ client })) }), EVERY_LAW)
  },
}

const ON_MYSQL = {
  where: 'on MySQL',
  async obeys(around: Around) {
    const { url } = await newMariaDbDatabase()
    const pool = createPool({ uri: url, connectionLimit: 10 })
    afterAll(() => pool.end())
    await new MySqlStore({ pool }).migrate()
    const open = async () => ({ store: around(new MySqlStore({ pool, sweeps: false })) })
    storeLaws(test.concurrent, open, { operable: true, listable: true, forgetful: true })
  },
}

const ON_POSTGRES = {
  where: 'on Postgres',
  async obeys(around: Around) {
    const { url } = await newDatabase()
    const pool = new Pool({ connectionString: url, max: 10 })
    afterAll(() => pool.end())
    await new PostgresStore({ pool }).migrate()
    const open = async () => ({ store: around(new PostgresStore({ pool, sweeps: false })) })
    storeLaws(test.concurrent, open, EVERY_LAW)
  },
}

const EVERYDAY: readonly Place[] = [IN_MEMORY, ON_REDIS]
const STORES = thoroughly<readonly Place[]>(EVERYDAY, [...EVERYDAY, ON_SQLITE, ON_MYSQL, ON_POSTGRES])
const COMPRESSED = { form: 'compressed', compress: true }
const AS_IT_IS = { form: 'as it is', compress: false }

describe.each(thoroughly([COMPRESSED], [COMPRESSED, AS_IT_IS]))(
  'a sealed store obeys the store laws, $form',
  ({ compress }) => {
    const keys = [newSealingKey(), newSealingKey()]
    describe.each(STORES)('$where', ({ obeys }) => obeys((store) => sealed(store, { keys, compress })))
  },
)
