import { type PoolTurns, retryConflicts } from '../sql/clients.js'
import { withoutStatement } from '../sql/errors.js'
import { type PostgresPool, type PostgresQuery, type Send, type SentStatement, sendOver } from './client.js'
import { isSerializationFailure, storeError } from './errors.js'
import { type Row, requireRow, requireRows } from './reply.js'

/**
 * Sends a statement, and retries it if the database rolled it back in favour of another one: under REPEATABLE READ and
 * SERIALIZABLE that is how commands on one record are serialized.
 */
export class PostgresDatabase {
  readonly #send: Send
  readonly #schema: string

  constructor(
    client: { readonly pool: PostgresPool } | { readonly query: PostgresQuery },
    schema: string,
    turns: PoolTurns,
    prepares: boolean,
  ) {
    this.#send = 'pool' in client ? sendOver(client.pool, turns, prepares) : sendBy(client.query)
    this.#schema = schema
  }

  /** @throws PostgresStoreError */
  async rows(statement: SentStatement): Promise<readonly Row[]> {
    return requireRows(await this.#answerTo(statement))
  }

  /** @throws PostgresStoreError */
  async row(statement: SentStatement, isUrgent = false): Promise<Row> {
    return requireRow(await this.#answerTo(statement, isUrgent))
  }

  #answerTo(statement: SentStatement, isUrgent = false): Promise<unknown> {
    const send = () => this.#send(statement, isUrgent)
    return retryConflicts(send, isSerializationFailure, (error) => storeError(error, this.#schema))
  }
}

function sendBy(query: PostgresQuery): Send {
  return async ({ text, values }) => {
    try {
      return await query(text, [...values])
    } catch (error) {
      throw withoutStatement(error)
    }
  }
}
