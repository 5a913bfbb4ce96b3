import { PostgresStore } from 'once-per-key/postgres'
import type { Pool } from 'pg'
import { loadDriver } from '../driver.js'
import { CONNECT_MS, DRIVER_MS, describeError } from '../limits.js'

export interface PostgresTarget {
  readonly kind: 'postgres'
  readonly store: PostgresStore
  readonly schema: string
  readonly pool: Pool
  close(): Promise<void>
}

export async function openPostgres(connectionString: string, schema = 'once_per_key'): Promise<PostgresTarget> {
  const { default: pg } = await loadDriver('pg', () => import('pg'))
  const limits = { connectionTimeoutMillis: CONNECT_MS, query_timeout: DRIVER_MS }
  const pool = new pg.Pool({ connectionString, max: 1, ...limits })
  pool.on('error', () => {}) // The next command says it.
  const store = new PostgresStore({ pool, schema, sweeps: false })
  try {
    const connection = await pool.connect()
    connection.release()
  } catch (error) {
    throw new Error(`Postgres cannot be reached: ${describeError(error)}`, { cause: error })
  }
  return { kind: 'postgres', store, schema, pool, close: () => pool.end() }
}
