import type { Store } from 'once-per-key/core'
import { PostgresStore } from 'once-per-key/postgres'
import { SqliteStore } from 'once-per-key/sqlite'
import { Pool } from 'pg'
import { afterAll, describe, test, vi } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { HISTORY_KEYS, tryHistories, tryOperatedHistories } from '../../support/history-trials.js'
import { newDatabase } from '../../support/postgres-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { age as ageMySql } from '../mysql/ageing.js'
import { openStore as openMySql } from '../mysql/open-store.js'
import { age as agePostgres } from '../postgres/ageing.js'
import { DRIVER_NAMES, type DriverName } from '../sqlite/drivers.js'
import { openStore as openSqlite } from '../sqlite/open-store.js'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 })

/** ONCE_PER_KEY_HISTORIES=25 tries so many times as many: 160,000 commands. */
const TIMES = Number(process.env.ONCE_PER_KEY_HISTORIES ?? thoroughly('1', '5'))

/** A store for each history, whose keys no other history has, and whose time the history moves. */
interface HistoryDialect {
  /** How many histories are tried at once, and how many with each kind of commands. */
  readonly atOnce: number
  readonly number: { readonly commands: number; readonly operated: number }
  /** Called at the beginning of a test. Opens a store for each history. */
  start(): Promise<(prefix: string) => { readonly store: Store; advance(ms: number): Promise<void> }>
}

async function onPostgres(isolation: string): Promise<HistoryDialect> {
  const { server } = await newDatabase()
  const url = await server.createDatabase(isolation.replace(' ', '_'), { default_transaction_isolation: isolation })
  const pool = new Pool({ connectionString: url, max: 16 })
  // What makes records older is no command, and is not to be undone for another's sake.
  const clock = new Pool({ connectionString: url, options: '-c default_transaction_isolation=read\\ committed' })
  afterAll(() => Promise.all([pool.end(), clock.end()]))
  const store = new PostgresStore({ pool, sweeps: false })
  await store.migrate()
  return {
    ...{ atOnce: 16, number: { commands: 20, operated: 20 } },
    start: async () => (prefix) => ({
      store: prefixed(store, prefix),
      advance: (ms) => agePostgres(clock, keysOf(prefix), ms),
    }),
  }
}

async function onMariaDb(): Promise<HistoryDialect> {
  const { store, pool } = await openMySql()
  return {
    ...{ atOnce: 8, number: { commands: 40, operated: 40 } },
    start: async () => (prefix) => ({
      store: prefixed(store, prefix),
      advance: (ms) => ageMySql(pool, keysOf(prefix), ms),
    }),
  }
}

async function onSqlite(driver: DriverName): Promise<HistoryDialect> {
  return {
    ...{ atOnce: 1, number: { commands: 100, operated: 48 } },
    async start() {
      const { database, store } = openSqlite(driver)
      await store.migrate()
      return () => {
        database.exec('DELETE FROM once_per_key_records')
        const { now, advance } = fakeClock()
        return { store: new SqliteStore({ database, now }), advance: async (ms) => advance(ms) }
      }
    },
  }
}

const DIALECTS: readonly (readonly [string, () => Promise<HistoryDialect>])[] = [
  ...['read committed', 'repeatable read', 'serializable'].map(
    (isolation) => [`Postgres at ${isolation}`, () => onPostgres(isolation)] as const,
  ),
  ['MariaDB', onMariaDb],
  ...DRIVER_NAMES.map((driver) => [`SQLite, ${driver}`, () => onSqlite(driver)] as const),
]

describe.each(DIALECTS)('random histories on %s', async (_name, open) => {
  const dialect = await open()

  test.each([
    ['of commands', tryHistories, dialect.number.commands, 2],
    ['with operators in between', tryOperatedHistories, dialect.number.operated, 1],
  ] as const)('%s get the replies of the machine', async (kind, tried, number, fewestVisits) => {
    const trial = { number: number * TIMES, fewestCommands: 24 * number * TIMES, fewestVisits }
    const open = await dialect.start()
    await tried(trial, dialect.atOnce, (history) => open(`${kind} ${history} `))
  })
})

function keysOf(prefix: string): string[] {
  return HISTORY_KEYS.map((key) => prefix + key)
}

/** The same store, with keys of its own. */
function prefixed(
  store: Required<Pick<Store, 'step' | 'inspect' | 'resolve' | 'forget'>> & Store,
  prefix: string,
): Store {
  return {
    begin: (key, claim) => store.begin(prefix + key, claim),
    renew: (key, own) => store.renew(prefix + key, own),
    complete: (key, own) => store.complete(prefix + key, own),
    release: (key, own) => store.release(prefix + key, own),
    step: (key, own) => store.step(prefix + key, own),
    inspect: (key) => store.inspect(prefix + key),
    resolve: (key, resolution) => store.resolve(prefix + key, resolution),
    forget: (key, forgetting) => store.forget(prefix + key, forgetting),
  }
}
