import {
  type Completion,
  type Entered,
  type Entry,
  type Finish,
  operationTaken,
  type RecordedResult,
  type StepChange,
} from '../../src/core/index.js'
import { type PostgresStoreErrorCode, sqlStateOf, storeError, withoutValues } from './errors.js'
import { readEntered, recordedIn, rowOf, text } from './reply.js'
import type { Statement, Statements } from './statements.js'

/** Runs a statement in the client's transaction `tx`, and resolves with what the client returns. */
export type RunInTransaction<Tx> = (tx: Tx, statement: Statement) => Promise<unknown>

/**
 * The statements of a run inside the application's transaction. If one of them raises, the transaction cannot be
 * committed.
 *
 * @throws PostgresStoreError with one of the codes for transactions; any other database error unchanged, so that the
 * code that opened the transaction can recognise a serialization failure and retry.
 */
export class InTransaction<Tx> {
  readonly #run: RunInTransaction<Tx>
  readonly #runLast: RunInTransaction<Tx>
  readonly #statements: Statements
  readonly #schema: string

  /** `runLast`: for the statement behind which only COMMIT comes. */
  constructor(run: RunInTransaction<Tx>, statements: Statements, schema: string, runLast = run) {
    this.#run = run
    this.#runLast = runLast
    this.#statements = statements
    this.#schema = schema
  }

  /**
   * The first statement: marks the transaction as the run's. The database ends the session after `idleMs` of
   * inactivity, so that a stalled owner does not lock the record forever. Resolves with whether it admits renewals:
   * above READ COMMITTED they would end it.
   */
  async mark(tx: Tx, token: string, idleMs: number): Promise<boolean> {
    const result = await this.#send(tx, this.#statements.mark(token, idleMs))
    return text(rowOf(result), 'isolation') === 'read committed'
  }

  /** Locks the record until the transaction ends, makes it uncertain, and reads the step of this label. */
  async step(tx: Tx, key: string, token: string, label: string): Promise<RecordedResult> {
    return recordedIn(rowOf(await this.#send(tx, this.#statements.step(key, token, label))))
  }

  async stepDone(tx: Tx, key: string, token: string, change: StepChange): Promise<void> {
    await this.#send(tx, this.#statements.stepDone(key, token, change))
  }

  /** The last statement: completes the record, and locks it until the transaction ends. */
  async complete(tx: Tx, key: string, completion: Completion, allowEmpty = false): Promise<void> {
    await this.#send(tx, this.#statements.completeIn(key, completion, allowEmpty), this.#runLast)
  }

  async enter(tx: Tx, key: string, entry: Entry): Promise<Entered> {
    return readEntered(rowOf(await this.#send(tx, this.#statements.enter(key, entry))))
  }

  /** The last statement of one that takes the key: writes the completed record, which must not be there, or be the one that the look has shown. */
  async finish(tx: Tx, key: string, finish: Finish, allowEmpty = false): Promise<void> {
    try {
      await this.#send(tx, this.#statements.finish(key, finish, allowEmpty), this.#runLast)
    } catch (error) {
      throw TAKEN.has(sqlStateOf(error)) ? operationTaken(error) : error
    }
  }

  /** The same for a transaction that the application opened and that has no mark: it must have written something. */
  async completeByHand(tx: Tx, key: string, completion: Completion): Promise<void> {
    await this.#send(tx, this.#statements.completeByHand(key, completion))
  }

  async #send(tx: Tx, statement: Statement, run = this.#run): Promise<unknown> {
    try {
      return await run(tx, statement)
    } catch (error) {
      withoutValues(error, statement)
      const translated = storeError(error, this.#schema)
      throw OURS.has(translated.code) ? translated : error
    }
  }
}

/** `unique_violation`: the record is there. `lock_not_available`: a command of a claimed run is writing it. */
const TAKEN: ReadonlySet<string | null> = new Set(['23505', '55P03'])

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
