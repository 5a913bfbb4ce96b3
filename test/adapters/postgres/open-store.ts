import { PostgresStore, type PostgresStoreOptions } from 'once-per-key/postgres'
import { Pool, type PoolConfig } from 'pg'
import { afterAll } from 'vitest'
import { type PostgresServer, type Settings, startPostgres } from '../../support/postgres-server.js'

/** A store in a new database of a server that the test file has for itself. Nothing of it sweeps by itself. */
export interface Opened {
  readonly server: PostgresServer
  readonly url: string
  readonly pool: Pool
  readonly store: PostgresStore
  /** Rows, as the superuser sees them. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

/** Closed behind the last test of the file. */
export async function openStore(settings: Settings = {}, config: PoolConfig = {}): Promise<Opened> {
  const server = await startPostgres(settings)
  const url = server.url()
  const pool = openPool(url, config)
  const store = storeOn({ pool })
  await store.migrate()
  afterAll(async () => {
    await pool.end()
    await server.close()
  })
  return {
    server,
    url,
    pool,
    store,
    query: async (sql, values) => (await pool.query(sql, values)).rows,
  }
}

/** Idle connections may break without an end to the process. */
export function openPool(connectionString: string, config: PoolConfig = {}): Pool {
  return new Pool({ connectionString, max: 10, ...config }).on('error', () => {})
}

export function storeOn(options: PostgresStoreOptions): PostgresStore {
  return new PostgresStore({ sweeps: false, ...options })
}
