import {
  type Completion,
  type Entered,
  type Entry,
  type Finish,
  operationTakenError,
  type RecordedResult,
  type StepChange,
  type Transactions,
} from '../../src/core/index.js'
import { redactStatementError } from '../sql/errors.js'
import {
  findSqlState,
  isRefusedStatement,
  PostgresStoreError,
  type PostgresStoreErrorCode,
  storeError,
} from './errors.js'
import { parseRecordedResult, readEnterReply, readText, requireRow } from './reply.js'
import type { Statement, Statements } from './statements.js'
import type { OpenedTransactions } from './transactions.js'

/**
 * A client's transactions, with the statements of a run inside them. If one of these raises, the transaction cannot be
 * committed.
 *
 * @throws PostgresStoreError with one of the codes for transactions; any other database error unchanged, so that the
 * code that opened the transaction can recognise a serialization failure and retry.
 */
export class PostgresTransactionStatements<Tx, Options> implements Transactions<Tx, Options> {
  readonly #client: OpenedTransactions<Tx, Options>
  readonly #statements: Statements
  readonly #schema: string
  readonly commitsWithLast: boolean
  /** Whether a transaction without options ran at READ COMMITTED, which allows renewals: then others will too. */
  #admitsRenewals = false

  constructor(client: OpenedTransactions<Tx, Options>, statements: Statements, schema: string) {
    this.#client = client
    this.#statements = statements
    this.#schema = schema
    this.commitsWithLast = client.runLast !== undefined
  }

  transaction(work: (tx: Tx) => Promise<void>, options: Options | undefined): Promise<unknown> {
    return this.#client.transaction(work, options)
  }

  /**
   * The first statement: marks the transaction as the run's. The database ends the session after `idleMs` of
   * inactivity, so that a stalled owner does not lock the record forever. Resolves with whether it admits renewals:
   * above READ COMMITTED they would end it.
   */
  async mark(tx: Tx, token: string, idleMs: number): Promise<boolean> {
    const result = await this.#send(tx, this.#statements.mark(token, idleMs))
    this.#admitsRenewals = readText(requireRow(result), 'isolation') === 'read committed'
    return this.#admitsRenewals
  }

  /** Locks the record until the transaction ends, makes it uncertain, and reads the step of this label. */
  async step(tx: Tx, key: string, token: string, label: string): Promise<RecordedResult> {
    return parseRecordedResult(requireRow(await this.#send(tx, this.#statements.step(key, token, label))))
  }

  async stepDone(tx: Tx, key: string, token: string, change: StepChange): Promise<void> {
    await this.#send(tx, this.#statements.stepDone(key, token, change))
  }

  /** The last statement: completes the record, and locks it until the transaction ends. */
  async complete(tx: Tx, key: string, completion: Completion, allowEmpty = false): Promise<void> {
    await this.#send(tx, this.#statements.completeIn(key, completion, allowEmpty), this.#client.runLast)
  }

  async enter(tx: Tx, key: string, entry: Entry): Promise<Entered> {
    return readEnterReply(requireRow(await this.#send(tx, this.#statements.enter(key, entry))))
  }

  /** The last statement of a transaction that takes the key. It writes the completed record, only over the one that the look has shown. */
  async finish(tx: Tx, key: string, finish: Finish, allowEmpty = false): Promise<void> {
    try {
      await this.#send(tx, this.#statements.finish(key, finish, allowEmpty), this.#client.runLast)
    } catch (error) {
      throw TAKEN.has(findSqlState(error)) ? operationTakenError(error) : error
    }
  }

  /** The same for a transaction that the application opened and that has no mark: it must have written something. */
  async completeByHand(tx: Tx, key: string, completion: Completion): Promise<void> {
    await this.#send(tx, this.#statements.completeByHand(key, completion))
  }

  sessionEnd(tx: Tx): Promise<void> | undefined {
    return this.#client.sessionEnd?.(tx)
  }

  needsRenewal(options: Options | undefined): boolean {
    return options !== undefined || !this.#admitsRenewals
  }

  /** After an error of the database itself the transaction is rolled back, unless the session may have ended. */
  leavesOpen(error: unknown): boolean {
    if (error instanceof PostgresStoreError) return error.code === 'connection_lost'
    return !isRefusedStatement(error) || findSqlState(error) === STATEMENT_COMPLETION_UNKNOWN
  }

  async #send(tx: Tx, statement: Statement, run = this.#client.run): Promise<unknown> {
    try {
      return await run.call(this.#client, tx, statement)
    } catch (thrown) {
      const error = redactStatementError(thrown)
      const translated = storeError(error, this.#schema)
      throw OURS.has(translated.code) ? translated : error
    }
  }
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
const STATEMENT_COMPLETION_UNKNOWN = '40003'

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
  'transaction_rolled_back',
])
