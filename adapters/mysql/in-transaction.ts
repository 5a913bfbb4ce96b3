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
import { findRows } from '../sql/clients.js'
import { isEndedByWork } from '../sql/errors.js'
import {
  type InFlight,
  isSameVersion,
  type RecordSnapshot,
  type RowVersion,
  requireOwned,
} from '../sql/record-columns.js'
import { computeRecordId, toCompletionValues } from '../sql/record-table.js'
import type { Row } from '../sql/row.js'
import type { SqlTransactions } from '../sql/sql-store.js'
import { areStepsWithinLimit, encodeSteps, findRecordedResult } from '../sql/steps-column.js'
import {
  ADVICE,
  assertStatementFits,
  findErrorNumber,
  isConflict,
  isDuplicate,
  isLocked,
  MySqlStoreError,
  type MySqlStoreErrorCode,
  redactStatementError,
  storeError,
  transactionNotOpenError,
  transactionUnmarkedError,
} from './errors.js'
import type { MySqlRecordTable } from './record-table.js'
import { clockIsSetError, countWrites, readVariable, selectClock, showWriteCounters } from './session.js'
import { computeStatementBytes, createStatement, type Statement, toLockRowToken, toSavepointName } from './sql.js'
import { createTransactionStatements } from './statements.js'
import { type AnyTransactions, type TransactionRunner, toTransactionRunner } from './transactions.js'

/**
 * A transaction as long as somebody waits for our statements in it. What we send takes several: the next one must not follow where the
 * client has been told to roll back, or it would be committed alone, or in another transaction on the same connection.
 */
interface TransactionHandle {
  readonly tx: unknown
  isOver(): boolean
  mark?: TransactionMark
}

interface TransactionMark {
  readonly token: string
  /** How many statements that write its session had been sent when it began. */
  readonly writesBefore: number
  /** Of a transaction that takes the key: what it has locked. */
  readonly taken?: RowVersion
}

/**
 * The application's transactions, with the statements of a run inside them. If one of these rejects, the transaction must not be
 * committed.
 *
 * The mark is a savepoint: COMMIT and ROLLBACK drop it, whoever sends them, as does the database when it rolls back a deadlock, and a
 * statement that commits implicitly. So it proves that this is still the transaction that was opened for the run.
 *
 * @throws MySqlStoreError with one of the codes for transactions; any other database error unchanged, so that the
 * code that opened the transaction can recognise a deadlock and retry.
 */
export class MySqlTransactionStatements implements SqlTransactions {
  readonly #client: TransactionRunner
  readonly #table: MySqlRecordTable
  readonly #statements: ReturnType<typeof createTransactionStatements>
  readonly #open = new WeakMap<object, TransactionHandle>()
  /** Whether the store has seen, over its own pool, a row that one of these transactions has locked: both use one database. */
  #isOneDatabase = false
  /** Of the application's sessions, as the first transaction tells; `undefined`: there was none. */
  #isolatesSnapshots: boolean | undefined

  constructor(given: AnyTransactions, table: MySqlRecordTable, prefix: string) {
    this.#client = toTransactionRunner(given)
    this.#table = table
    this.#statements = createTransactionStatements(prefix)
  }

  transaction(work: (tx: unknown) => Promise<void>, options: unknown): Promise<unknown> {
    return this.#client.transaction((tx) => this.#runWhileOpen(tx, () => work(tx)), options)
  }

  /** After the work nothing of ours is sent in its transaction any more. */
  async #runWhileOpen(tx: unknown, work: () => Promise<void>): Promise<void> {
    let isOver = false
    this.#open.set(tx as object, { tx, isOver: () => isOver })
    try {
      await work()
    } finally {
      isOver = true
    }
  }

  /**
   * The first statement: marks the transaction as the run's. Nothing bounds the inactivity of a session: both servers can only bound
   * all of a session's transactions.
   */
  async mark(tx: unknown, token: string): Promise<boolean> {
    const open = this.#requireOpenTransaction(tx)
    await this.#setMark(open, token)
    await this.#saveMark(open, { token })
    this.#isolatesSnapshots ??= await this.#doesIsolateSnapshots(open)
    return !this.needsRenewal(undefined)
  }

  /** Whether a locking read of a row that was changed since its snapshot would end the transaction: MySQL has no such thing. */
  async #doesIsolateSnapshots(open: TransactionHandle): Promise<boolean> {
    const [row] = await this.#queryRows(open, showSnapshotIsolation())
    return row !== undefined && readVariable(row) === 'ON'
  }

  /** Locks the record until the transaction ends, and makes it uncertain. Resolves with what it says of the step. */
  async step(tx: unknown, key: string, token: string, label: string): Promise<RecordedResult> {
    const open = this.#requireOpenTransaction(tx)
    const { steps } = await this.#lockOwnedWithSteps(open, key, token)
    await this.#send(open, this.#statements.makeUncertain({ id: computeRecordId(key) }))
    return findRecordedResult(steps, label)
  }

  /** Records its result; one for which there is no room is done, and not kept. */
  async stepDone(tx: unknown, key: string, token: string, change: StepChange): Promise<void> {
    const open = this.#requireOpenTransaction(tx)
    const found = await this.#lockOwnedWithSteps(open, key, token)
    const kept = { ...found, steps: machine.applyStep(found.steps, change) }
    const bare = { ...found, steps: machine.applyStep(found.steps, { ...change, result: null }) }
    const hasRoom = areStepsWithinLimit(kept, this.#table.database.maxStatementBytes)
    const steps = encodeSteps(hasRoom ? kept : bare)
    await this.#send(open, this.#statements.writeSteps({ id: computeRecordId(key), steps }))
  }

  /** The last statement: completes the record, and locks it until the transaction ends. */
  async complete(tx: unknown, key: string, completion: Completion, allowEmpty: boolean): Promise<void> {
    const open = this.#requireOpenTransaction(tx)
    await this.#assertMayComplete(open, completion.token, allowEmpty)
    await this.#lockOwned(open, key, completion.token)
    await this.#send(open, this.#statements.completeLocked(toCompletionValues(key, completion)))
  }

  /**
   * The first statement of a transaction that takes the key. A row is its lock: one that nobody else can see, or, where the look has
   * found one, that. Whether the key is free is asked outside of the transaction: inside, a locking read of a row that is absent
   * would lock its neighbours too, and any other could read the past.
   */
  async enter(tx: unknown, key: string, entry: Entry): Promise<Entered> {
    const open = this.#requireOpenTransaction(tx)
    const found = await this.#table.readUnlessKeyLocked(key)
    if (found === 'locked') return 'locked'
    if (machine.enter(found.record, entry, found.now) !== 'entered') return 'taken'
    const lockRowToken = toLockRowToken(entry.token)
    await this.#setMark(open, entry.token)
    try {
      if (found.version === null) await this.#insertLockRow(open, key, lockRowToken, found.now)
      else if (!isSameVersion((await this.#lock(open, key, true)).version, found.version)) return 'locked'
    } catch (error) {
      if (isDuplicate(error)) return 'locked'
      // Not to be tried again here: after a deadlock, and with `innodb_rollback_on_timeout`, the transaction is no longer open.
      if (isLocked(error) || isConflict(error)) return 'taken'
      throw error
    }
    if (found.version === null) await this.#assertSameDatabase(key, entry.token)
    await this.#saveMark(open, {
      token: entry.token,
      taken: found.version ?? { token: lockRowToken, revision: 1, expiresAt: 0 },
    })
    return 'entered'
  }

  /** A row that is only a lock. `now`: by the clock of the store's sessions. */
  async #insertLockRow(open: TransactionHandle, key: string, token: string, now: number): Promise<void> {
    const values = { id: computeRecordId(key), name: key, token, expiresAt: now + DAY_MS }
    await this.#send(open, this.#statements.insertLockRow(values))
  }

  /** The last one: writes the completed record over the row that it has locked. */
  async finish(tx: unknown, key: string, finish: Finish, allowEmpty: boolean): Promise<void> {
    const open = this.#requireOpenTransaction(tx)
    await this.#assertMayComplete(open, finish.token, allowEmpty)
    const taken = open.mark?.taken
    if (taken === undefined) throw operationTakenError()
    const { version } = await this.#lock(open, key, false)
    if (!isSameVersion(version, taken)) throw operationTakenError()
    const { fingerprint, attempt } = finish
    const values = { ...toCompletionValues(key, finish), fingerprint, attempt, taken: taken.token }
    await this.#send(open, this.#statements.finish(values))
  }

  /** The same for a transaction that the application opened. Whether it has written something cannot be seen. */
  async completeByHand(tx: unknown, key: string, completion: Completion, isAwaited: () => boolean): Promise<void> {
    const open: TransactionHandle = { tx, isOver: () => !isAwaited() }
    await this.#setMark(open, completion.token)
    await this.#assertMark(open, completion.token, transactionNotOpenError)
    await this.#lockOwned(open, key, completion.token)
    await this.#send(open, this.#statements.completeLocked(toCompletionValues(key, completion)))
  }

  sessionEnd(tx: unknown): Promise<void> | undefined {
    return this.#client.sessionEnd(tx)
  }

  /**
   * At any level of isolation a locking read reads what was committed last, so renewals do no harm; unless the server ends a
   * transaction that locks a row which has changed since its snapshot (`innodb_snapshot_isolation`, MariaDB's default from 11.6 on).
   */
  needsRenewal(_options: unknown): boolean {
    return this.#isolatesSnapshots !== false || this.#table.database.last?.isolatesSnapshots !== false
  }

  /** A deadlock, which a Galera cluster reports at COMMIT, has rolled it back. Whatever else, the record is asked. */
  leavesOpen(error: unknown): boolean {
    return error instanceof MySqlStoreError ? error.code === 'connection_lost' : !isConflict(error)
  }

  async #assertMayComplete(open: TransactionHandle, token: string, allowEmpty: boolean): Promise<void> {
    if (open.mark?.token !== token) throw transactionUnmarkedError()
    if (!allowEmpty && (await this.#countWrites(open)) === open.mark.writesBefore) {
      throw new MySqlStoreError('nothing_written', ADVICE.nothing_written)
    }
    await this.#assertMark(open, token)
  }

  async #saveMark(open: TransactionHandle, known: Omit<TransactionMark, 'writesBefore'>): Promise<void> {
    open.mark = { ...known, writesBefore: await this.#countWrites(open) }
  }

  /** Once: the row that is a lock must be one for the store too. */
  async #assertSameDatabase(key: string, token: string): Promise<void> {
    this.#isOneDatabase ||= (await this.#table.readUnlessKeyLocked(key)) === 'locked'
    if (!this.#isOneDatabase) requireOwned(null, token, MySqlStoreError)
  }

  async #setMark(open: TransactionHandle, token: string): Promise<void> {
    await this.#send(open, createStatement(`SAVEPOINT ${toSavepointName(token)}`)())
  }

  /** It is dropped, so that it can be checked once. */
  async #assertMark(open: TransactionHandle, token: string, error = transactionUnmarkedError): Promise<void> {
    await this.#send(open, createStatement(`RELEASE SAVEPOINT ${toSavepointName(token)}`)()).catch((cause) => {
      throw findErrorNumber(cause) === DOES_NOT_EXIST ? error(cause) : cause
    })
  }

  /** How many statements that write the session has been sent, whether they have met a row or not. */
  async #countWrites(open: TransactionHandle): Promise<number> {
    return countWrites(await this.#queryRows(open, showWriteCounters()))
  }

  /** In the marked transaction. */
  async #lockOwnedWithSteps(open: TransactionHandle, key: string, token: string): Promise<InFlight> {
    await this.#assertMark(open, token)
    await this.#setMark(open, token)
    const { record } = await this.#queryLocked(open, this.#statements.lockWithSteps({ id: computeRecordId(key) }))
    return requireOwned(record, token, MySqlStoreError)
  }

  async #lockOwned(open: TransactionHandle, key: string, token: string): Promise<void> {
    const { record } = await this.#lock(open, key, false)
    requireOwned(record, token, MySqlStoreError)
  }

  /** The row as last committed, without its answer and its steps. */
  #lock(open: TransactionHandle, key: string, atOnce: boolean): Promise<RecordSnapshot> {
    const lock = atOnce ? this.#statements.lockAtOnce : this.#statements.lock
    return this.#queryLocked(open, lock({ id: computeRecordId(key) }))
  }

  /** A row without its body, in a session whose clock goes. */
  async #queryLocked(open: TransactionHandle, sent: Statement): Promise<RecordSnapshot> {
    const [row] = await this.#queryRows(open, sent)
    if (row === undefined) return ABSENT
    const found = decodeTexts(row)
    const { stood_at: stoodAt, steps } = found
    if (typeof stoodAt === 'string') {
      const [next] = await this.#queryRows(open, selectClock())
      if (next === undefined || decodeTexts(next).stood_at === stoodAt) throw clockIsSetError()
    }
    const bytes = typeof steps === 'string' ? Buffer.from(steps, 'hex') : null
    return this.#table.parseRow({ ...found, body: null, steps: bytes })
  }

  async #queryRows(open: TransactionHandle, sent: Statement): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const rows = findRows(await this.#send(open, sent))
    if (rows !== null) return rows
    throw new MySqlStoreError('database_failed', 'The client returned no rows.')
  }

  #requireOpenTransaction(tx: unknown): TransactionHandle {
    const open = this.#open.get(tx as object)
    if (open === undefined) throw transactionUnmarkedError()
    return open
  }

  async #send(open: TransactionHandle, sent: Statement): Promise<unknown> {
    if (open.isOver()) throw transactionUnmarkedError()
    assertStatementFits(computeStatementBytes(sent), this.#table.database.maxStatementBytes)
    try {
      return await this.#client.run(open.tx, sent)
    } catch (thrown) {
      const error = redactStatementError(thrown)
      if (isEndedByWork(error)) throw transactionUnmarkedError(error)
      const translated = storeError(error)
      throw OURS.has(translated.code) ? translated : error
    }
  }
}

const OURS: ReadonlySet<MySqlStoreErrorCode> = new Set([
  'schema_missing',
  'permission_denied',
  'read_only',
  'packet_too_large',
])

const ABSENT: RecordSnapshot = { now: 0, record: null, version: null }

/** https://mariadb.com/kb/en/e1305/: SAVEPOINT … does not exist. */
const DOES_NOT_EXIST = 1305

const showSnapshotIsolation = createStatement("SHOW SESSION VARIABLES LIKE 'innodb_snapshot_isolation'")

/** Some clients return text as bytes. */
function decodeTexts(row: Row): Row {
  const decode = (value: unknown) => (value instanceof Uint8Array ? new TextDecoder().decode(value) : value)
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, decode(value)]))
}

const DAY_MS = 86_400_000
