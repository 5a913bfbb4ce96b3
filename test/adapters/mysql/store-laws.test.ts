import { createPool as createCallbackPool } from 'mysql2'
import { createPool, type PoolOptions } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { storeLaws } from 'once-per-key/testing'
import { afterAll, describe, test, vi } from 'vitest'
import { IS_MYSQL, startMariaDb } from '../../support/mariadb-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { ISOLATION, SNAPSHOTS } from './open-store.js'

// The laws wait for real leases to lapse, each on keys of its own: together they wait no longer than one. No more at a time than a
// busy machine serves: the store refuses a command that waits for a connection for long.
vi.setConfig({ maxConcurrency: 15, testTimeout: 60_000 })

const server = await startMariaDb()
afterAll(() => server.close())

const session = (sql: string) => (uri: string) => {
  const pool = createCallbackPool({ uri, connectionLimit: 10 })
  pool.on('connection', (connection) => connection.query(sql))
  return pool
}

/** Whatever the application has configured for its own statements, it means nothing to the store. */
const ODD: PoolOptions = {
  ...{ rowsAsArray: true, nestTables: '_', namedPlaceholders: true, typeCast: false, dateStrings: true },
  ...{ supportBigNumbers: true, bigNumberStrings: true, charset: 'latin1', timezone: '+05:30', resetOnRelease: true },
}

const EVERYDAY = [['promises', (uri: string) => createPool({ uri, connectionLimit: 10 })]] as const
const OTHERS = [
  ['odd_sessions', session(`SET time_zone = '-11:00', ${ISOLATION} = 'SERIALIZABLE'${SNAPSHOTS}`)],
  ['callbacks', (uri: string) => createCallbackPool({ uri, connectionLimit: 10 })],
  ['read_committed', session(`SET ${ISOLATION} = 'READ-COMMITTED'`)],
  ['odd_pool', (uri: string) => createPool({ uri, connectionLimit: 10, ...ODD })],
  [
    'odd_modes',
    session(`SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL${IS_MYSQL ? '' : ',SIMULTANEOUS_ASSIGNMENT'}'`),
  ],
] as const

describe.each(thoroughly<readonly (typeof EVERYDAY | typeof OTHERS)[number][]>(EVERYDAY, [...EVERYDAY, ...OTHERS]))(
  'MySqlStore obeys the store laws: %s',
  async (name, poolOf) => {
    const pool = poolOf(await server.createDatabase(name))
    afterAll(() => (pool.end as (end?: () => void) => unknown)(() => {}))
    await new MySqlStore({ pool }).migrate()
    storeLaws(test.concurrent, async () => ({ store: new MySqlStore({ pool, sweeps: false }) }), {
      operable: true,
      listable: true,
      forgetful: true,
    })
  },
)
