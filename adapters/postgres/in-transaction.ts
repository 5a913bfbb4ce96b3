import type { Completion } from '../../src/core/index.js'
import { type PostgresStoreErrorCode, storeError } from './errors.js'
import { rowOf, text } from './reply.js'
import type { Statement } from './statement.js'
import type { Statements } from './statements.js'

/** Runs a statement inside a transaction of the client's, `tx`, and answers with what the client answers. */
export type RunInTransaction<Tx> = (tx: Tx, statement: Statement) => Promise<unknown>

/** Of Postgres: 'read committed', 'repeatable read' or 'serializable'. */
export type IsolationLevel = string

/**
 * The statements of a run inside a transaction of the application's. Each raises where it may not go on: then nothing of the
 * transaction can be committed.
 *
 * @throws PostgresStoreError with one of the codes for transactions; any other error of the database as the client throws
 * it, so that whoever opened the transaction recognizes a serialization failure and tries again.
 */
export class InTransaction<Tx> {
  readonly #run: RunInTransaction<Tx>
  readonly #statements: Statements
  readonly #schema: string

  constructor(run: RunInTransaction<Tx>, statements: Statements, schema: string) {
    this.#run = run
    this.#statements = statements
    this.#schema = schema
  }

  /**
   * First of all: marks the transaction as the run's. A session that then does nothing for `idleMs` is ended by the
   * database, so that a stalled owner holds no record for ever.
   */
  async mark(tx: Tx, token: string, idleMs: number): Promise<IsolationLevel> {
    const result = await this.#send(tx, this.#statements.mark(token, idleMs))
    return text(rowOf(result), 'isolation')
  }

  /** Locks the record until the transaction is over, and makes it uncertain. */
  async step(tx: Tx, key: string, token: string): Promise<void> {
    await this.#send(tx, this.#statements.step(key, token))
  }

  /** Last of all: completes the record, and locks it until the transaction is over. */
  async complete(tx: Tx, key: string, completion: Completion): Promise<void> {
    await this.#send(tx, this.#statements.completeIn(key, completion))
  }

  /** The same where the transaction was opened elsewhere, and so has no mark: it must have written something. */
  async completeByHand(tx: Tx, key: string, completion: Completion): Promise<void> {
    await this.#send(tx, this.#statements.completeByHand(key, completion))
  }

  async #send(tx: Tx, statement: Statement): Promise<unknown> {
    try {
      return await this.#run(tx, statement)
    } catch (error) {
      const translated = storeError(error, this.#schema)
      throw OURS.has(translated.code) ? translated : error
    }
  }
}

const OURS: ReadonlySet<PostgresStoreErrorCode> = new Set([
  'schema_missing',
  'permission_denied',
  'read_only',
  'record_unreadable',
  'transaction_unmarked',
  'transaction_taken',
  'nothing_written',
  'record_absent',
  'record_taken',
  'record_ended',
])
