import type { Pool } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { driver } from '../driver.js'
import { CONNECT_MS, reasonOf } from '../limits.js'

export interface MySqlTarget {
  readonly kind: 'mysql'
  readonly store: MySqlStore
  readonly prefix: string
  readonly pool: Pool
  close(): Promise<void>
}

export async function openMySql(uri: string, prefix = 'once_per_key_'): Promise<MySqlTarget> {
  const { createPool } = await driver('mysql2', () => import('mysql2/promise'))
  const pool = createPool({ uri, connectionLimit: 1, connectTimeout: CONNECT_MS })
  const store = new MySqlStore({ pool, prefix, sweeps: false })
  try {
    const connection = await pool.getConnection()
    connection.release()
  } catch (error) {
    throw new Error(`MySQL cannot be reached: ${reasonOf(error)}`, { cause: error })
  }
  return { kind: 'mysql', store, prefix, pool, close: () => pool.end() }
}
