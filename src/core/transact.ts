import type { Completion } from './run-end.js'
import { RunTransaction, usableRun } from './run-transaction.js'
import type { Store } from './store.js'
import { transactionNotRun } from './transaction-errors.js'

/** What a store brings so that a run's effects and its record commit together: its client's transactions, and what runs in one. */
export interface Transactions<Tx, Options> {
  /**
   * Opens a transaction, calls the work with it, and commits; rolls back where the work rejects, and rejects. It may call the
   * work again where the database undid the transaction for another's sake.
   */
  transaction(work: (tx: Tx) => Promise<void>, options: Options | undefined): Promise<unknown>
  /**
   * The first statement: marks the transaction as the run's, and has the database end a session that does nothing for
   * `idleMs`. Resolves with whether a renewal of the lease leaves the transaction as it is: above READ COMMITTED it would
   * abort it.
   */
  mark(tx: Tx, token: string, idleMs: number): Promise<boolean>
  /** Locks the record until the transaction is over, and makes it uncertain. Rejects unless the token owns it. */
  step(tx: Tx, recordKey: string, token: string): Promise<void>
  /** The last statement: completes the record. Rejects unless the token owns it, and this is the marked transaction. */
  complete(tx: Tx, recordKey: string, completion: Completion): Promise<void>
  /** Whether a renewal is to be confirmed before the mark: not where renewals leave such a transaction as it is. */
  needsRenewal(options: Options | undefined): boolean
  /** Whether this error at COMMIT leaves open whether it was committed. */
  leavesOpen(error: unknown): boolean
}

/**
 * Runs `work` in a transaction that completes the record of a run: its effects are committed if, and only if, the record is
 * completed. Resolves with what the work resolved with: behind the COMMIT, or, where the answer is a failure, behind the
 * rollback.
 *
 * @throws IdempotencyError for misuse, and `lease_lost`: nothing was committed. What the work threw, or the database where it
 * completes the record or commits: it was rolled back, the answer was discarded, and the run goes on. Where nobody knows what
 * became of a COMMIT until `maxRunMs` is over, the error of the COMMIT; the client was told to come back.
 */
export async function transact<Tx, Value, Options>(
  store: Store,
  context: unknown,
  transactions: Transactions<Tx, Options>,
  work: (tx: Tx) => Value | Promise<Value>,
  options: Options | undefined,
): Promise<Value> {
  const transaction = new RunTransaction(context, store, 'transaction')
  let value: Value | undefined
  let progress = 'working' as Progress
  const inside = async (tx: Tx): Promise<void> => {
    progress = 'working'
    transaction.begun()
    if (await marked(tx, transaction, transactions, options)) transaction.admitRenewals()
    value = await work(tx)
    const completion = await transaction.resolved(value)
    if (completion === null) {
      progress = 'refused'
      throw ROLL_BACK
    }
    await transaction.locking()
    await transactions.complete(tx, transaction.recordKey, completion)
    progress = 'completed'
  }
  try {
    await transactions.transaction(inside, options)
    if (progress !== 'completed') throw transactionNotRun()
  } catch (error) {
    if (progress === 'refused') {
      await transaction.failed()
      return value as Value
    }
    // What the work threw before the record was completed: there was no COMMIT.
    const isOpen = progress === 'completed' && transactions.leavesOpen(error)
    if (isOpen && (await transaction.resolve())) return value as Value
    if (!isOpen) await transaction.rolledBack()
    throw error
  }
  transaction.committed()
  return value as Value
}

/** Behind BEGIN, since a wait for a connection would be a wait without renewals; the mark takes the snapshot. */
async function marked<Tx, Options>(
  tx: Tx,
  transaction: RunTransaction,
  transactions: Transactions<Tx, Options>,
  options: Options | undefined,
): Promise<boolean> {
  if (transactions.needsRenewal(options)) await transaction.renew()
  return transactions.mark(tx, transaction.token, transaction.idleMs)
}

/** How far the last call of the work has come. `refused`: its answer is a failure. `completed`: only the COMMIT is left. */
type Progress = 'working' | 'refused' | 'completed'

/** Has the client roll back. */
export const ROLL_BACK = new Error('once-per-key: the answer is a failure, so the transaction is rolled back.')

/**
 * Commits writes of a run that goes on: its record is locked, made uncertain, and stays in flight. Resolves with what the work
 * resolved with, behind the COMMIT.
 *
 * @throws IdempotencyError for misuse: nothing was committed. What the work threw, or the database: whether it was committed
 * is not known where the error came from the COMMIT, and says nothing of it.
 */
export async function step<Tx, Value, Options>(
  store: Store,
  context: unknown,
  transactions: Transactions<Tx, Options>,
  work: (tx: Tx) => Value | Promise<Value>,
  options: Options | undefined,
): Promise<Value> {
  const transaction = new RunTransaction(context, store, 'step')
  let value: Value | undefined
  let isDone = false
  let mayBeCommitted = false
  try {
    await transactions.transaction(async (tx) => {
      isDone = false
      await marked(tx, transaction, transactions, options)
      await transaction.locking()
      await transactions.step(tx, transaction.recordKey, transaction.token)
      value = await work(tx)
      isDone = true
    }, options)
    if (!isDone) throw transactionNotRun()
    mayBeCommitted = true
  } catch (error) {
    mayBeCommitted = isDone && transactions.leavesOpen(error)
    throw error
  } finally {
    await transaction.stepOver(mayBeCommitted)
  }
  return value as Value
}

/**
 * Completes the record of a run by hand, in a transaction of the application's. From then on the end of the run asks the
 * record what became of it.
 *
 * @throws IdempotencyError for misuse; what `complete` rejects with: the transaction cannot be committed.
 */
export async function completeByHand(
  store: Store,
  context: unknown,
  answer: unknown,
  complete: (recordKey: string, completion: Completion) => Promise<void> | void,
): Promise<void> {
  const run = usableRun(context, store)
  run.mayEnter()
  const completion = run.completionByHand(answer)
  await run.lockLease()
  try {
    await complete(run.recordKey, completion)
  } catch (error) {
    run.resumeRenewals()
    throw error
  }
  run.completedByHand()
}
