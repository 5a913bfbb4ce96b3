import { type PoolTurns, retryConflicts } from '../sql/clients.js'
import { redactStatementError } from '../sql/errors.js'
import {
  createPoolSender,
  type PostgresPool,
  type PostgresQuery,
  type SentStatement,
  type StatementSender,
} from './client.js'
import { isSerializationFailure, storeError } from './errors.js'
import { type Row, requireRow, requireRows } from './reply.js'

/**
 * Sends a statement, and retries it if the database rolled it back in favour of another one: under REPEATABLE READ and
 * SERIALIZABLE that is how commands on one record are serialized.
 */
export class PostgresDatabase {
  readonly #send: StatementSender
  readonly #schema: string

  constructor(
    client: { readonly pool: PostgresPool } | { readonly query: PostgresQuery },
    schema: string,
    turns: PoolTurns,
    prepares: boolean,
  ) {
    this.#send = 'pool' in client ? createPoolSender(client.pool, turns, prepares) : createQuerySender(client.query)
    this.#schema = schema
  }

  /** @throws PostgresStoreError */
  async queryRows(statement: SentStatement): Promise<readonly Row[]> {
    return requireRows(await this.#sendWithRetries(statement))
  }

  /** @throws PostgresStoreError */
  async queryRow(statement: SentStatement, isUrgent = false): Promise<Row> {
    return requireRow(await this.#sendWithRetries(statement, isUrgent))
  }

  #sendWithRetries(statement: SentStatement, isUrgent = false): Promise<unknown> {
    const send = () => this.#send(statement, isUrgent)
    return retryConflicts(send, isSerializationFailure, (error) => storeError(error, this.#schema))
  }
}

function createQuerySender(query: PostgresQuery): StatementSender {
  return async ({ text, values }) => {
    try {
      return await query(text, [...values])
    } catch (error) {
      throw redactStatementError(error)
    }
  }
}
