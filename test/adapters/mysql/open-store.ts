import { createPool, type Pool, type PoolOptions, type RowDataPacket } from 'mysql2/promise'
import { MySqlStore, type MySqlStoreOptions } from 'once-per-key/mysql'
import { afterAll } from 'vitest'
import { type MariaDbServer, newMariaDbDatabase, startMariaDb } from '../../support/mariadb-server.js'

/** What a session's isolation is called, by MariaDB and by MySQL. */
export const ISOLATION = '/*M! tx_isolation *//*!80000 transaction_isolation */'
/** To set as well, where there is such a thing: on MariaDB. */
export const SNAPSHOTS = '/*M!, innodb_snapshot_isolation = ON */'

/** A store in a new database. Nothing of it sweeps by itself. */
export interface Opened {
  readonly server: MariaDbServer
  readonly url: string
  readonly pool: Pool
  readonly store: MySqlStore
  /** Rows, as the superuser sees them. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

/** With settings, even with none of them, on a server of the file's own. Closed behind the last test of the file. */
export async function openStore(settings?: Readonly<Record<string, string>>): Promise<Opened> {
  const { server, url, close } = settings === undefined ? await onWorkers() : await ownServer(settings)
  const pool = openPool(url)
  const store = storeOn({ pool })
  await store.migrate()
  afterAll(async () => {
    await pool.end().catch(() => {})
    await close()
  })
  return {
    server,
    url,
    pool,
    store,
    query: async (sql, values) => (await pool.query<RowDataPacket[]>(sql, values))[0],
  }
}

interface Place {
  readonly server: MariaDbServer
  readonly url: string
  close(): Promise<void>
}

/** What the worker has, it keeps for its other files. */
async function onWorkers(): Promise<Place> {
  return { ...(await newMariaDbDatabase()), close: async () => {} }
}

async function ownServer(settings: Readonly<Record<string, string>>): Promise<Place> {
  const server = await startMariaDb(settings)
  return { server, url: await server.createDatabase('payments'), close: server.close }
}

export function openPool(uri: string, options: PoolOptions = {}): Pool {
  return createPool({ uri, connectionLimit: 10, ...options })
}

export function storeOn(options: MySqlStoreOptions): MySqlStore {
  return new MySqlStore({ sweeps: false, ...options })
}
