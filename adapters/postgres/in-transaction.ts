import { Buffer } from 'node:buffer'
import {
  type Completion,
  type Entered,
  type Entry,
  type Finish,
  machine,
  operationTakenError,
  type RecordedResult,
  type StepChange,
} from '../../src/core/index.js'
import { redactErrorValues } from '../sql/errors.js'
import { buildUnreadableMessage } from '../sql/record-columns.js'
import { computeRecordId, toCompletionValues } from '../sql/record-table.js'
import { DamagedRowError, type Row } from '../sql/row.js'
import type { SqlTransactions } from '../sql/sql-store.js'
import { encodeStepsColumn, findRecordedResult, parseStepsColumn, type StoredSteps } from '../sql/steps-column.js'
import {
  findSqlState,
  isOperationTaken,
  isStatementRefusal,
  PostgresStoreError,
  type PostgresStoreErrorCode,
  storeError,
} from './errors.js'
import type { PostgresRecordTable } from './record-table.js'
import { requireRow, requireText } from './reply.js'
import { computeLockNumber, type Statement } from './sql.js'
import { createTransactionStatements } from './transaction-statements.js'
import type { TransactionRunner } from './transactions.js'

/**
 * A client's transactions, with the statements of a run inside them. If one of these raises, the transaction cannot be
 * committed.
 *
 * @throws PostgresStoreError with one of the codes for transactions; any other database error unchanged, so that the
 * code that opened the transaction can recognise a serialization failure and retry.
 */
export class PostgresTransactionStatements implements SqlTransactions {
  readonly #client: TransactionRunner
  readonly #table: PostgresRecordTable
  readonly #schema: string
  readonly #statements: ReturnType<typeof createTransactionStatements>
  readonly commitsWithLast: boolean
  /** The recorded steps of the records that open transactions have locked, by the transaction. */
  readonly #lockedSteps = new WeakMap<object, { readonly token: string; readonly steps: StoredSteps }>()
  /** Whether a transaction without options ran at READ COMMITTED, which allows renewals: then others will too. */
  #admitsRenewals = false

  constructor(client: TransactionRunner, table: PostgresRecordTable, schema: string) {
    this.#client = client
    this.#table = table
    this.#schema = schema
    this.#statements = createTransactionStatements(schema)
    this.commitsWithLast = client.commitsWithLast
  }

  transaction(work: (tx: unknown) => Promise<void>, options: unknown): Promise<unknown> {
    return this.#client.transaction(work, options)
  }

  /**
   * The first statement: marks the transaction as the run's. The database ends the session after `idleMs` of
   * inactivity, so that a stalled owner does not lock the record forever. Resolves with whether it admits renewals:
   * above READ COMMITTED they would end it.
   */
  async mark(tx: unknown, token: string, idleMs: number): Promise<boolean> {
    const row = requireRow(await this.#send(tx, this.#statements.mark({ token, idleMs })))
    this.#admitsRenewals = requireText(row, 'isolation') === 'read committed'
    return this.#admitsRenewals
  }

  /** Locks the record until the transaction ends, makes it uncertain, and reads the step of this label. */
  async step(tx: unknown, key: string, token: string, label: string): Promise<RecordedResult> {
    const row = requireRow(await this.#send(tx, this.#statements.step({ id: computeRecordId(key), token })))
    const steps = this.#parseSteps(row)
    this.#lockedSteps.set(this.#toHolder(tx), { token, steps })
    return findRecordedResult(steps, label)
  }

  async stepDone(tx: unknown, key: string, token: string, change: StepChange): Promise<void> {
    const locked = this.#lockedSteps.get(this.#toHolder(tx))
    this.#lockedSteps.delete(this.#toHolder(tx))
    // A client that gives each transaction the same object would mix up the steps of two runs.
    if (locked?.token !== token) throw new PostgresStoreError('transaction_unmarked', SHARED_TX)
    const steps = encodeStepsColumn(machine.applyStep(locked.steps, change), false)
    await this.#send(tx, this.#statements.stepDone({ id: computeRecordId(key), token, steps }))
  }

  #parseSteps(row: Row): StoredSteps {
    try {
      return parseStepsColumn(row.steps === null ? null : Buffer.from(requireText(row, 'steps'), 'hex')).steps
    } catch (error) {
      if (!(error instanceof DamagedRowError)) throw error
      throw new PostgresStoreError('record_unreadable', buildUnreadableMessage(error.message))
    }
  }

  #toHolder(tx: unknown): object {
    return Object(tx) === tx ? (tx as object) : this
  }

  /** The last statement: completes the record, and locks it until the transaction ends. */
  async complete(tx: unknown, key: string, completion: Completion, allowEmpty = false): Promise<void> {
    const { complete, completeEmpty } = this.#statements
    const statement = (allowEmpty ? completeEmpty : complete)(toCompletionValues(key, completion))
    await this.#sendAll(tx, [statement], true)
  }

  /** The first statement of a transaction that takes the key. */
  async enter(tx: unknown, key: string, entry: Entry): Promise<Entered> {
    const id = computeRecordId(key)
    const { token, idleMs } = entry
    const lock = computeLockNumber(id, this.#schema)
    const { enter, readEntered } = this.#statements
    const [entered, read] = await this.#sendAll(tx, [enter({ token, idleMs, lock }), readEntered({ id })])
    const row = requireRow(entered)
    if (requireText(row, 'isolation') === 'read committed') {
      const { now, found: json } = requireRow(read)
      const found: Row = typeof json === 'string' ? JSON.parse(json) : {}
      const { record, now: at } = this.#table.parseRow({ ...found, now, body: null, steps: null })
      if (machine.enter(record, entry, at) === 'taken') return 'taken'
    }
    return row.free === '1' ? 'entered' : 'locked'
  }

  /** The last statement of a transaction that takes the key. It writes the completed record, only over the one that the look has shown. */
  async finish(tx: unknown, key: string, finish: Finish, allowEmpty = false): Promise<void> {
    const { fingerprint, seen, attempt } = finish
    const statements = this.#statements
    const over = allowEmpty ? statements.finishOverEmpty : statements.finishOver
    const fresh = allowEmpty ? statements.finishEmpty : statements.finish
    const values = { ...toCompletionValues(key, finish), name: key, fingerprint, attempt, seen }
    await this.#sendAll(tx, [(seen === null ? fresh : over)(values)], true, isOperationTaken)
  }

  /** The same for a transaction that the application opened and that has no mark: it must have written something. */
  async completeByHand(tx: unknown, key: string, completion: Completion): Promise<void> {
    await this.#send(tx, this.#statements.completeByHand(toCompletionValues(key, completion)))
  }

  sessionEnd(tx: unknown): Promise<void> | undefined {
    return this.#client.sessionEnd(tx)
  }

  needsRenewal(options: unknown): boolean {
    return options !== undefined || !this.#admitsRenewals
  }

  /** After an error of the database itself the transaction is rolled back, unless the session may have ended. */
  leavesOpen(error: unknown): boolean {
    if (error instanceof PostgresStoreError) return error.code === 'connection_lost'
    return !isStatementRefusal(error) || findSqlState(error) === STATEMENT_COMPLETION_UNKNOWN
  }

  async #send(tx: unknown, statement: Statement): Promise<unknown> {
    return (await this.#sendAll(tx, [statement]))[0]
  }

  async #sendAll(
    tx: unknown,
    statements: readonly Statement[],
    isLast = false,
    isTaken = NEVER,
  ): Promise<readonly unknown[]> {
    try {
      return await this.#client.runAll(tx, statements, isLast)
    } catch (thrown) {
      if (thrown instanceof PostgresStoreError) throw thrown
      if (isTaken(thrown)) throw operationTakenError(redactErrorValues(thrown))
      const error = storeError(thrown, this.#schema)
      throw OURS.has(error.code) ? error : error.cause
    }
  }
}

const SHARED_TX =
  'The client gave the `tx` of this transaction to another one too, which has begun a step meanwhile: give each transaction its own `tx`.'

const NEVER = (_error: unknown) => false

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
const STATEMENT_COMPLETION_UNKNOWN = '40003'

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
