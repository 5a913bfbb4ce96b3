import { PostgresStore, type PostgresStoreOptions } from 'once-per-key/postgres'
import { Pool, type PoolConfig } from 'pg'
import { afterAll, beforeEach } from 'vitest'
import { newDatabase, type PostgresServer, type Settings, startPostgres } from '../../support/postgres-server.js'

/** A store in a new database. Nothing of it sweeps by itself. */
export interface Opened {
  readonly server: PostgresServer
  readonly url: string
  readonly pool: Pool
  readonly store: PostgresStore
  /** Rows, as the superuser sees them. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

/** With settings, even with none of them, on a server of the file's own. Closed behind the last test of the file. */
export async function openStore(settings?: Settings, config: PoolConfig = {}): Promise<Opened> {
  const { server, url, close } = settings === undefined ? await onWorkers() : await ownServer(settings)
  const pool = openPool(url, config)
  const store = storeOn({ pool })
  await store.migrate()
  afterAll(async () => {
    await pool.end()
    await close()
  })
  return {
    server,
    url,
    pool,
    store,
    query: async (sql, values) => (await pool.query(sql, values)).rows,
  }
}

/** A store whose transactions are the application's, which writes into a table `effects`. Both are empty before each test. */
export async function openWithEffects(): Promise<Pick<Opened, 'store' | 'query'>> {
  const { pool, query, url } = await openStore()
  await query('CREATE TABLE effects (id text)')
  beforeEach(async () => {
    await query('TRUNCATE once_per_key.records, effects')
  })
  return { store: storeOn({ pool, transactions: openPool(url) }), query }
}

interface Place {
  readonly server: PostgresServer
  readonly url: string
  close(): Promise<void>
}

/** What the worker has, it keeps for its other files. */
async function onWorkers(): Promise<Place> {
  return { ...(await newDatabase()), close: async () => {} }
}

async function ownServer(settings: Settings): Promise<Place> {
  const server = await startPostgres(settings)
  return { server, url: server.url(), close: server.close }
}

/** Idle connections may break without an end to the process. */
export function openPool(connectionString: string, config: PoolConfig = {}): Pool {
  return new Pool({ connectionString, max: 10, ...config }).on('error', () => {})
}

export function storeOn(options: PostgresStoreOptions): PostgresStore {
  return new PostgresStore({ sweeps: false, ...options })
}
