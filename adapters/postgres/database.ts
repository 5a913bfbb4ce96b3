import { type PoolTurns, retryConflicts } from '../sql/clients.js'
import type { Row } from '../sql/row.js'
import {
  createPoolSender,
  type PostgresPool,
  type PostgresQuery,
  type SentStatement,
  type StatementSender,
} from './client.js'
import { isSerializationFailure, storeError } from './errors.js'
import { requireRow, requireRows } from './reply.js'

/** A pipeline returns bytes as the session writes them. */
const SETTINGS = "SELECT pg_catalog.set_config('bytea_output', 'hex', true)"

/** A stretch of a small table would otherwise be read by a scan of the whole table. */
const WALK_SETTINGS = `${SETTINGS}, pg_catalog.set_config('enable_seqscan', 'off', true)`

/**
 * Sends statements over the store's client, each a transaction of its own. One that the database rolls back in favour of another one is
 * sent again.
 */
export class PostgresDatabase {
  readonly maxStatementBytes = Number.POSITIVE_INFINITY
  readonly #send: StatementSender
  readonly #schema: string
  /**
   * Whether the sessions begin transactions above READ COMMITTED. There commands would abort each other, and at SERIALIZABLE also the
   * application's transactions.
   */
  #isIsolated = false

  constructor(
    { pool, query }: { readonly pool?: PostgresPool; readonly query?: PostgresQuery | undefined },
    schema: string,
    turns: PoolTurns,
    prepares: boolean,
  ) {
    // Each statement alone: a client other than `pg` opens no transaction.
    this.#send = query
      ? async ({ text, values }) => query(text, [...values])
      : createPoolSender(pool as PostgresPool, turns, prepares)
    this.#schema = schema
  }

  /** @throws PostgresStoreError */
  async queryRows(statement: SentStatement, isUrgent = false): Promise<readonly Row[]> {
    const rows = await this.#sendWithRetries(statement, isUrgent, this.#isIsolated ? SETTINGS : null)
    const isolation = rows[0]?.isolation
    if (isolation !== undefined && isolation !== 'read committed') this.#isIsolated = true
    return rows
  }

  /** @throws PostgresStoreError */
  async queryRow(statement: SentStatement, isUrgent = false): Promise<Row> {
    return requireRow(await this.queryRows(statement, isUrgent))
  }

  /** Resolves with how many rows were written. @throws PostgresStoreError */
  async write(statement: SentStatement, isUrgent = false): Promise<number> {
    return (await this.queryRows(statement, isUrgent)).length
  }

  /** For a statement that reads a stretch of the table. @throws PostgresStoreError */
  queryStretch(statement: SentStatement): Promise<readonly Row[]> {
    return this.#sendWithRetries(statement, false, WALK_SETTINGS)
  }

  /** `settings`: what is sent before the statement, in one transaction at READ COMMITTED; `null`: the statement is sent alone. */
  #sendWithRetries(statement: SentStatement, isUrgent: boolean, settings: string | null): Promise<readonly Row[]> {
    const send = async () => requireRows(await this.#send(statement, isUrgent, settings))
    const hasValues = statement.values.length > 0
    return retryConflicts(send, isSerializationFailure, (error) => storeError(error, this.#schema, hasValues))
  }
}
