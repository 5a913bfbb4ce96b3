import type { RowDataPacket } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { loadDriver } from '../driver.js'
import { CONNECT_MS, DRIVER_MS, describeError } from '../limits.js'

export interface MySqlTarget {
  readonly kind: 'mysql'
  readonly store: MySqlStore
  readonly prefix: string
  rows(sql: string, values?: readonly unknown[]): Promise<readonly RowDataPacket[]>
  close(): Promise<void>
}

/** Whatever the application's URL says of its own rows. */
const AS_USUAL = { rowsAsArray: false, nestTables: false, typeCast: true, bigNumberStrings: false }

export async function openMySql(uri: string, prefix = 'once_per_key_'): Promise<MySqlTarget> {
  const { createPool } = await loadDriver('mysql2', () => import('mysql2/promise'))
  const pool = createPool({ uri, connectionLimit: 1, connectTimeout: CONNECT_MS })
  const store = new MySqlStore({ pool, prefix, sweeps: false })
  try {
    const connection = await pool.getConnection()
    connection.release()
  } catch (error) {
    throw new Error(`MySQL cannot be reached: ${describeError(error)}`, { cause: error })
  }
  const rows: MySqlTarget['rows'] = async (sql, values = []) => {
    const options = { sql, values: [...values], timeout: DRIVER_MS, ...AS_USUAL }
    const [found] = await pool.query<RowDataPacket[]>(options)
    return found
  }
  return { kind: 'mysql', store, prefix, rows, close: () => pool.end() }
}
