import type { Completion } from '../../src/core/index.js'
import { type PostgresStoreErrorCode, storeError } from './errors.js'
import { rowOf, text } from './reply.js'
import type { Statement } from './statement.js'
import type { Statements } from './statements.js'
import { withoutValues } from './without-values.js'

/** Runs a statement in the client's transaction `tx`, and resolves with what the client returns. */
export type RunInTransaction<Tx> = (tx: Tx, statement: Statement) => Promise<unknown>

/** As Postgres names them: 'read committed', 'repeatable read' or 'serializable'. */
export type IsolationLevel = string

/**
 * The statements of a run inside the application's transaction. If one of them raises, the transaction cannot be
 * committed.
 *
 * @throws PostgresStoreError with one of the codes for transactions; any other database error unchanged, so that the
 * code that opened the transaction can recognise a serialization failure and retry.
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
   * The first statement: marks the transaction as the run's. The database ends the session after `idleMs` of
   * inactivity, so that a stalled owner does not lock the record forever.
   */
  async mark(tx: Tx, token: string, idleMs: number): Promise<IsolationLevel> {
    const result = await this.#send(tx, this.#statements.mark(token, idleMs))
    return text(rowOf(result), 'isolation')
  }

  /** Locks the record until the transaction ends, and makes it uncertain. */
  async step(tx: Tx, key: string, token: string): Promise<void> {
    await this.#send(tx, this.#statements.step(key, token))
  }

  /** The last statement: completes the record, and locks it until the transaction ends. */
  async complete(tx: Tx, key: string, completion: Completion, allowEmpty = false): Promise<void> {
    await this.#send(tx, this.#statements.completeIn(key, completion, allowEmpty))
  }

  /** The same for a transaction that the application opened and that has no mark: it must have written something. */
  async completeByHand(tx: Tx, key: string, completion: Completion): Promise<void> {
    await this.#send(tx, this.#statements.completeByHand(key, completion))
  }

  async #send(tx: Tx, statement: Statement): Promise<unknown> {
    try {
      return await this.#run(tx, statement)
    } catch (error) {
      withoutValues(error, statement)
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
