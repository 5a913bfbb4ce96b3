import { PostgresStore } from 'once-per-key/postgres'
import type { Pool } from 'pg'
import { driver } from '../driver.js'

export interface PostgresTarget {
  readonly kind: 'postgres'
  readonly store: PostgresStore
  readonly schema: string
  readonly pool: Pool
  close(): Promise<void>
}

const CONNECT_MS = 5_000

export async function openPostgres(connectionString: string, schema = 'once_per_key'): Promise<PostgresTarget> {
  const { default: pg } = await driver('pg', () => import('pg'))
  const pool = new pg.Pool({ connectionString, max: 1, connectionTimeoutMillis: CONNECT_MS })
  pool.on('error', () => {}) // The next command says it.
  const store = new PostgresStore({ pool, schema, sweeps: false })
  return { kind: 'postgres', store, schema, pool, close: () => pool.end() }
}
