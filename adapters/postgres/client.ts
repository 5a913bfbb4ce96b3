import { PostgresStoreError } from './errors.js'
import { isRefusedStatement } from './sql-state.js'
import type { Statement, StatementValue } from './statement.js'

/** Sends one statement, and answers with what the client answers. */
export type Send = (statement: Pick<Statement, 'text' | 'values'>) => Promise<unknown>

/** Of `pg`: opened, configured and closed by the application. Its members that the store uses. */
export interface PostgresPool {
  connect(): Promise<PostgresConnection>
  readonly totalCount: number
  readonly idleCount: number
  /** How many wait for a connection. */
  readonly waitingCount: number
}

/** A connection that a pool hands out. */
export interface PostgresConnection {
  query(text: string, values: StatementValue[]): Promise<unknown>
  release(broken?: boolean): void
  // biome-ignore lint/suspicious/noExplicitAny: as the listeners of Node's emitters
  on(event: 'error', listener: (error: any) => void): unknown
  // biome-ignore lint/suspicious/noExplicitAny: as the listeners of Node's emitters
  off(event: 'error', listener: (error: any) => void): unknown
}

/**
 * For any other client: sends one statement, outside of any transaction, with its values as they are (texts, `Buffer`s and
 * `null`), and answers with `{ rows }` or with the rows, bytes as `Buffer`s.
 */
export type PostgresQuery = (text: string, values: StatementValue[]) => Promise<unknown>

export const EXPECTED_POOL =
  'a Pool of `pg` (a single Client waits for itself, and a URL is for the Pool: `new Pool({ connectionString })`); for another ' +
  'client give `query: (text, values) => …` that answers with { rows }'

export function isPool(value: unknown): value is PostgresPool {
  if (typeof value !== 'object' || value === null) return false
  const { connect, totalCount, waitingCount } = value as Partial<PostgresPool>
  return typeof connect === 'function' && typeof totalCount === 'number' && typeof waitingCount === 'number'
}

/** Whether its owner has closed it, or is about to: nothing more is to be sent. */
export function isEnded(pool: PostgresPool): boolean {
  const { ended, ending } = pool as { readonly ended?: boolean; readonly ending?: boolean }
  return ended === true || ending === true
}

/** A server that does not answer for so long has gone without a word; its connection would be kept for a quarter of an hour. */
const SILENCE_MS = 30_000

/** Over a pool; `onWait` hears how many wait where a statement does not get a connection soon. */
export function sendOver(pool: PostgresPool, onWait: (waiting: number) => void): Send {
  return async (statement) => {
    const connection = await connectionOf(pool, onWait)
    connection.on('error', ignored)
    let isGood = false
    try {
      const result = await answered(connection.query(statement.text, [...statement.values]))
      isGood = true
      return result
    } catch (error) {
      isGood = isRefusedStatement(error)
      throw error
    } finally {
      connection.release(!isGood)
      connection.off('error', ignored)
    }
  }
}

const LONG_WAIT_MS = 100

async function connectionOf(pool: PostgresPool, onWait: (waiting: number) => void): Promise<PostgresConnection> {
  if (pool.idleCount > 0) return pool.connect()
  const timer = setTimeout(() => {
    // One that is being opened is not waited for in line.
    if (pool.waitingCount > 0) onWait(pool.waitingCount)
  }, LONG_WAIT_MS).unref()
  try {
    return await pool.connect()
  } finally {
    clearTimeout(timer)
  }
}

/** Rejects where the server has gone without a word. */
export function answered<Result>(query: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new PostgresStoreError('connection_lost', `The database did not answer for ${SILENCE_MS} ms.`))
    }, SILENCE_MS).unref()
    query.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Without a listener, a connection that breaks would end the process; the statement on it fails anyway. */
function ignored(): void {}
