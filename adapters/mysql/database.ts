import { isDemoted, type PoolTurns, retryConflicts, runOnConnection } from '../sql/clients.js'
import type { Row } from '../sql/row.js'
import { giveBack, hasResetOnRelease, type MySqlConnection, type MySqlPool, sendSql, takeConnection } from './client.js'
import {
  ADVICE,
  assertStatementFits,
  isConflict,
  isDuplicate,
  isReadOnly,
  isStatementRefusal,
  MySqlStoreError,
  redactStatementError,
  storeError,
} from './errors.js'
import { examineDatabase, type SessionProperties } from './examination.js'
import { RESET_SESSION_CLOCK_SQL } from './session.js'
import { type Statement, toLiteralSql } from './sql.js'

interface WriteResult {
  /** How many rows it found, or has written. */
  readonly affectedRows: number
  readonly serverStatus: number
}

/** https://dev.mysql.com/doc/dev/mysql-server/latest/mysql__com_8h.html: a transaction is open. */
const SERVER_STATUS_IN_TRANS = 1

/**
 * Sends statements over the store's pool, each a transaction of its own. The database rolls back one of those that deadlock, which is
 * retried.
 */
export class MySqlDatabase {
  readonly #pool: MySqlPool
  readonly #prefix: string
  readonly #turns: PoolTurns
  readonly #examined = new WeakMap<MySqlConnection, SessionProperties>()
  /** What the last connection was found to be. */
  last: SessionProperties | undefined

  constructor(pool: MySqlPool, prefix: string, turns: PoolTurns) {
    this.#pool = pool
    this.#prefix = prefix
    this.#turns = turns
  }

  /** How large a statement may be, as far as that is known. */
  get maxStatementBytes(): number {
    return this.last?.maxStatementBytes ?? Number.POSITIVE_INFINITY
  }

  /** @throws MySqlStoreError */
  async queryRows(statement: Statement, isUrgent = false): Promise<readonly Row[]> {
    const rows = await this.#sendWithRetries(statement, isUrgent)
    if (!Array.isArray(rows)) throw new MySqlStoreError('database_failed', 'The client returned no rows.')
    return rows
  }

  /**
   * Resolves with how many rows it found, or has written. None if there is a row already, as the unique index decides.
   *
   * @throws MySqlStoreError
   */
  async write(statement: Statement, isUrgent = false): Promise<number> {
    try {
      const { affectedRows } = (await this.#sendWithRetries(statement, isUrgent)) as WriteResult
      return affectedRows
    } catch (error) {
      if (isDuplicate(error)) return 0
      throw error
    }
  }

  /** Before there are tables. @throws MySqlStoreError */
  async define(sql: string): Promise<void> {
    await this.#runOnConnection((connection) => sendSql(connection, sql), false).catch((error) => {
      throw storeError(error)
    })
  }

  #sendWithRetries(statement: Statement, isUrgent: boolean): Promise<unknown> {
    const sql = toLiteralSql(statement)
    const send = () =>
      this.#runOnConnection((connection, found) => sendStatement(connection, sql, found), true, isUrgent)
    return retryConflicts(send, isConflict, storeError)
  }

  async #runOnConnection<Result>(
    send: (connection: MySqlConnection, found: SessionProperties | undefined) => Promise<Result>,
    examines: boolean,
    isUrgent = false,
  ): Promise<Result> {
    const connection = await takeConnection(this.#pool, this.#turns, isUrgent).catch((error) => {
      throw storeError(error)
    })
    return runOnConnection(
      connection,
      async () => send(connection, examines ? await this.#examine(connection) : undefined),
      (error) => isStatementRefusal(error) && !isDemoted(connection, isReadOnly(error)),
      (isGood) => giveBack(connection, isGood),
      (result) => !isDemoted(connection, saysReadOnly(result)) && !saysThatItsClockIsSet(result),
    )
  }

  /** Each connection once: a server may have been replaced by another one. */
  async #examine(connection: MySqlConnection): Promise<SessionProperties> {
    const known = this.#examined.get(connection)
    if (known !== undefined) return known
    const found = await examineDatabase((sql) => sendSql(connection, sql), this.#prefix)
    if (!hasResetOnRelease(this.#pool)) this.#examined.set(connection, found)
    this.last = found
    return found
  }
}

async function sendStatement(
  connection: MySqlConnection,
  sql: string,
  found: SessionProperties | undefined,
): Promise<unknown> {
  if (found !== undefined) assertStatementFits(sql.length, found.maxStatementBytes)
  if (found?.hidesItsClock === true) await resetClock(connection)
  const result = await sendSql(connection, sql).catch((error) => {
    throw redactStatementError(error)
  })
  const { serverStatus = 0 } = result as Partial<WriteResult>
  // The connection is then closed, which rolls back.
  if ((serverStatus & SERVER_STATUS_IN_TRANS) !== 0)
    throw new MySqlStoreError('connection_in_use', ADVICE.connection_in_use)
  return result
}

/** Whom the server does not let set it has not set it. */
async function resetClock(connection: MySqlConnection): Promise<void> {
  await sendSql(connection, RESET_SESSION_CLOCK_SQL).catch((error) => {
    if (!isStatementRefusal(error)) throw error
  })
}

/** The connection is then closed: the application has used it. */
function saysThatItsClockIsSet(result: unknown): boolean {
  return Array.isArray(result) && result[0]?.is_set === '1'
}

/** A read-only server refuses nothing to a user with a privilege: only its rows say what it is. */
function saysReadOnly(result: unknown): boolean {
  return Array.isArray(result) && result[0]?.read_only === '1'
}
