import { limitSilence, type PoolTurns } from '../sql/clients.js'
import { MySqlStoreError } from './errors.js'

/** The members of a callback pool of `mysql2` that the store uses. The application opens, configures and closes the pool. */
export interface MySqlCallbackPool {
  // biome-ignore lint/suspicious/noExplicitAny: as mysql2 declares its callbacks
  getConnection(callback: (error: any, connection: any) => any): void
  // biome-ignore lint/suspicious/noExplicitAny: a promise pool of whichever version
  promise(...implementation: any[]): any
}

/** The same of a pool of `mysql2/promise`. */
export interface MySqlPromisePool {
  // biome-ignore lint/suspicious/noExplicitAny: a connection of whichever version
  getConnection(): Promise<any>
  // biome-ignore lint/suspicious/noExplicitAny: the callback pool behind it
  readonly pool: any
}

export type MySqlPool = MySqlPromisePool | MySqlCallbackPool

/** A connection of a callback pool. */
export interface MySqlConnection {
  query(options: object, callback: (error: unknown, result: unknown) => void): void
  release(): void
  destroy(): void
  on(event: 'error', listener: (error: unknown) => void): unknown
  off(event: 'error', listener: (error: unknown) => void): unknown
}

export const EXPECTED_POOL =
  'a pool of `mysql2` or `mysql2/promise` (not a single connection, and not a URL: `createPool(url)`)'

export function isPool(value: unknown): value is MySqlPool {
  if (typeof value !== 'object' || value === null) return false
  const { getConnection, pool, promise } = value as Partial<MySqlPromisePool & MySqlCallbackPool>
  return typeof getConnection === 'function' && (isObject(pool) || typeof promise === 'function')
}

/** The members of the pool behind both forms. */
interface CorePool extends MySqlCallbackPool {
  readonly config?: { readonly resetOnRelease?: boolean }
  readonly _closed?: boolean
  readonly _connectionQueue?: { readonly length: number }
}

export function getCorePool(pool: MySqlPool): CorePool {
  return 'pool' in pool && isObject(pool.pool) ? (pool.pool as CorePool) : (pool as CorePool)
}

/** Whether the application has closed the pool: then nothing more is sent. */
export function isEnded(pool: MySqlPool): boolean {
  return getCorePool(pool)._closed === true
}

/** What a pool forgets when a connection is given back. */
export function hasResetOnRelease(pool: MySqlPool): boolean {
  return getCorePool(pool).config?.resetOnRelease === true
}

export function takeConnection(pool: MySqlPool, turns: PoolTurns, isUrgent: boolean): Promise<MySqlConnection> {
  const core = getCorePool(pool)
  return turns.connect(
    () => getCallbackConnection(core),
    () => core._connectionQueue?.length,
    isUrgent,
  )
}

export function getCallbackConnection(pool: MySqlCallbackPool): Promise<MySqlConnection> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => (error ? reject(error) : resolve(connection)))
  })
}

export function giveBack(connection: MySqlConnection, isGood: boolean): void {
  if (isGood) connection.release()
  else connection.destroy()
}

/** Sends one statement as `sendWithoutLimit` does, and rejects if the server stays silent. */
export function sendSql(connection: MySqlConnection, sql: string): Promise<unknown> {
  return limitSilence(sendWithoutLimit(connection, sql), MySqlStoreError)
}

/** Sends one statement as it is. Independent of what the application has configured for its own. */
export function sendWithoutLimit(connection: MySqlConnection, sql: string): Promise<unknown> {
  const options = { sql, typeCast, rowsAsArray: false, nestTables: false, namedPlaceholders: false }
  return new Promise((resolve, reject) => {
    connection.query(options, (error, result) => (error ? reject(error) : resolve(result)))
  })
}

interface Field {
  readonly name: string
  string(): string | null
  buffer(): Uint8Array | null
}

/** All columns are text, but those of bytes. */
function typeCast(field: Field): string | Uint8Array | null {
  return BYTES.has(field.name) ? field.buffer() : field.string()
}

const BYTES: ReadonlySet<string> = new Set(['body', 'steps'])

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
