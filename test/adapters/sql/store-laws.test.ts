import { createPool as createCallbackPool } from 'mysql2'
import { createPool, type PoolOptions } from 'mysql2/promise'
import type { Store } from 'once-per-key/core'
import { type MySqlPool, MySqlStore } from 'once-per-key/mysql'
import { PostgresStore } from 'once-per-key/postgres'
import { type OpenedStore, storeLaws } from 'once-per-key/testing'
import { Pool } from 'pg'
import { afterAll, describe, test, vi } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { IS_MYSQL, newMariaDbDatabase } from '../../support/mariadb-server.js'
import { startPgBouncer } from '../../support/pgbouncer.js'
import { newDatabase, type Settings } from '../../support/postgres-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { ISOLATION, SNAPSHOTS } from '../mysql/open-store.js'
import { DRIVER_NAMES, type DriverName } from '../sqlite/drivers.js'
import { openStore as openSqlite } from '../sqlite/open-store.js'

// On a server the laws wait for real leases to lapse, each on keys of its own: together they wait no longer than one. No more at a time
// than a busy machine serves: the store refuses a command that waits for a connection for long.
vi.setConfig({ maxConcurrency: 10, testTimeout: 60_000 })

/** Resolves with how each law opens a store. */
type Flavour = () => Promise<() => OpenedStore | Promise<OpenedStore>>

function onPostgres(name: string, settings: Settings, isBounced = false): Flavour {
  return async () => {
    const { server } = await newDatabase()
    const direct = await server.createDatabase(name, settings)
    const bouncer = isBounced ? await startPgBouncer(server.port) : undefined
    const pool = new Pool({ connectionString: bouncer?.url(name) ?? direct, max: 10 })
    afterAll(() => pool.end().then(() => bouncer?.close()))
    await new PostgresStore({ pool }).migrate()
    return () => ({ store: new PostgresStore({ pool, sweeps: false }) })
  }
}

function onMySql(name: string, createPoolOf: (uri: string) => MySqlPool): Flavour {
  return async () => {
    const { server } = await newMariaDbDatabase()
    const pool = createPoolOf(await server.createDatabase(name))
    afterAll(() => (pool as unknown as { end(onEnd: () => void): unknown }).end(() => {}))
    await new MySqlStore({ pool }).migrate()
    return () => ({ store: new MySqlStore({ pool, sweeps: false }) })
  }
}

const promises = (options: PoolOptions) => (uri: string) => createPool({ uri, connectionLimit: 10, ...options })
const callbacks = (uri: string) => createCallbackPool({ uri, connectionLimit: 10 })
const session = (sql: string) => (uri: string) =>
  callbacks(uri).on('connection', (connection) => void connection.query(sql))

/** Whatever the application has configured for its own statements, it means nothing to the store. */
const ODD: PoolOptions = {
  ...{ rowsAsArray: true, nestTables: '_', namedPlaceholders: true, typeCast: false, dateStrings: true },
  ...{ supportBigNumbers: true, bigNumberStrings: true, charset: 'latin1', timezone: '+05:30', resetOnRelease: true },
}
const ODD_MODES = `ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL${IS_MYSQL ? '' : ',SIMULTANEOUS_ASSIGNMENT'}`

const isolation = (level: string) => ({ default_transaction_isolation: level })

function onSqlite(driver: DriverName, connections: 1 | 2): Flavour {
  return async () => () => {
    const { now, advance } = fakeClock()
    const { store, storeOn } = openSqlite(driver, { now })
    return { store: connections === 1 ? store : takeTurns(store, storeOn()), advance }
  }
}

/** The first command to one store, the second to the other, and so on. */
function takeTurns(one: Store, other: Store): Store {
  let commands = 0
  return new Proxy(one, {
    get(_one, name) {
      const store = commands++ % 2 === 0 ? one : other
      const member = Reflect.get(store, name, store)
      return typeof member === 'function' ? member.bind(store) : member
    },
  })
}

const EVERYDAY = {
  'PostgresStore, read committed': onPostgres('laws_read_committed', isolation('read committed')),
  'MySqlStore, promises': onMySql('laws_promises', promises({})),
  ...Object.fromEntries(
    DRIVER_NAMES.map((driver) => [
      `SqliteStore, ${driver}, whichever of two connections a command goes over`,
      onSqlite(driver, 2),
    ]),
  ),
}

const OTHERS = {
  'PostgresStore, through PgBouncer, serializable': onPostgres('laws_both', isolation('serializable'), true),
  'PostgresStore, repeatable read': onPostgres('laws_repeatable_read', isolation('repeatable read')),
  'PostgresStore, serializable': onPostgres('laws_serializable', isolation('serializable')),
  'PostgresStore, not synchronous': onPostgres('laws_not_synchronous', { synchronous_commit: 'off' }),
  'PostgresStore, through PgBouncer': onPostgres('laws_bounced', {}, true),
  'MySqlStore, odd sessions': onMySql(
    'laws_odd_sessions',
    session(`SET time_zone = '-11:00', ${ISOLATION} = 'SERIALIZABLE'${SNAPSHOTS}`),
  ),
  'MySqlStore, callbacks': onMySql('laws_callbacks', callbacks),
  'MySqlStore, read committed': onMySql('laws_read_committed', session(`SET ${ISOLATION} = 'READ-COMMITTED'`)),
  'MySqlStore, odd pool': onMySql('laws_odd_pool', promises(ODD)),
  'MySqlStore, odd modes': onMySql('laws_odd_modes', session(`SET sql_mode = '${ODD_MODES}'`)),
  ...Object.fromEntries(DRIVER_NAMES.map((driver) => [`SqliteStore, ${driver}, one connection`, onSqlite(driver, 1)])),
}

const FLAVOURS: readonly (readonly [string, Flavour])[] = Object.entries(
  thoroughly<Readonly<Record<string, Flavour>>>(EVERYDAY, { ...EVERYDAY, ...OTHERS }),
)

describe.each(FLAVOURS)('the store laws hold: %s', async (name, start) => {
  const open = await start()
  // SQLite's is closed behind each test, and waits for nothing.
  const run = name.startsWith('SqliteStore') ? test : test.concurrent
  storeLaws(run, async () => open(), { operable: true, listable: true, forgetful: true, stepped: true })
})
