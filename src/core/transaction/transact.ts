import { isKeptIn } from '../calls/kept-in.js'
import { contextForeign, contextMissing, transactionNotRun } from '../misuse.js'
import { RUN } from '../run/context.js'
import type { Run } from '../run/run.js'
import type { Completion } from '../run/run-end.js'
import type { Store } from '../store.js'
import { RunTransaction, type StepOutcome } from './run-transaction.js'
import { type Call, within } from './transaction-call.js'

/**
 * What a store provides so that a run's effects and its record commit together: its client's transactions, and the
 * statements inside them.
 */
export interface Transactions<Tx, Options> {
  /**
   * Opens a transaction, calls the work with it, and commits; if the work rejects, rolls back and rejects. May call the
   * work again after the database rolled the transaction back in favour of another one.
   */
  transaction(work: (tx: Tx) => Promise<void>, options: Options | undefined): Promise<unknown>
  /**
   * The first statement: marks the transaction as the run's, and makes the database end a session that is inactive for
   * `idleMs`. Resolves with whether renewals of the lease may run meanwhile: above READ COMMITTED they would abort the
   * transaction.
   */
  mark(tx: Tx, token: string, idleMs: number): Promise<boolean>
  /** Locks the record until the transaction ends, and makes it uncertain. Rejects unless the token owns it. */
  step(tx: Tx, recordKey: string, token: string): Promise<void>
  /**
   * The last statement: completes the record. Rejects unless the token owns it, this is the marked transaction, and something was
   * written in it before; `allowEmpty`: or nothing was.
   */
  complete(tx: Tx, recordKey: string, completion: Completion, allowEmpty: boolean): Promise<void>
  /** Resolves when the database has ended the session of an open transaction; `undefined` if the client does not tell. */
  sessionEnd?(tx: Tx): Promise<void> | undefined
  /** Whether a renewal must be confirmed before the mark: not if renewals do not affect such a transaction. */
  needsRenewal(options: Options | undefined): boolean
  /** Whether, after this error at COMMIT, it is unknown whether it was committed. */
  leavesOpen(error: unknown): boolean
}

/**
 * Runs `work` in a transaction that completes the record of a run: its effects are committed if, and only if, the
 * record is completed. Resolves with the result of the work, after the COMMIT or, if the answer is a failure, after the
 * rollback.
 *
 * @throws IdempotencyError for misuse, and `lease_lost`: nothing was committed. What the work threw, or the database at
 * the completion or COMMIT: it was rolled back, the answer was discarded, and the run continues. If the outcome of a
 * COMMIT is still unknown after `maxRunMs`, the error of the COMMIT; the client was told to retry.
 */
export async function transact<Tx, Value, Options>(
  store: Store,
  context: unknown,
  transactions: Transactions<Tx, Options>,
  work: (tx: Tx) => Value | Promise<Value>,
  options: Options | undefined,
  allowEmpty = false,
): Promise<Value> {
  const transaction = await RunTransaction.behind(usableRun(context, store), 'transaction')
  let value: Value | undefined
  let progress = 'working' as Progress
  const inside = async (tx: Tx, call: Call): Promise<void> => {
    progress = 'working'
    if (await marked(tx, call, transaction, transactions, options)) transaction.admitRenewals()
    value = await transaction.resultOf(call, () => work(tx), transactions.sessionEnd?.(tx))
    const completion = await transaction.resolved(value)
    transaction.stillOpen(call)
    if (completion === null) {
      progress = 'refused'
      throw ROLL_BACK
    }
    await transaction.locking()
    transaction.stillOpen(call)
    await transaction.inTime(transactions.complete(tx, transaction.recordKey, completion, allowEmpty))
    transaction.stillOpen(call)
    progress = 'completed'
  }
  try {
    await transaction.until(transactions.transaction((tx) => transaction.called((call) => inside(tx, call)), options))
    if (progress !== 'completed') throw transactionNotRun()
  } catch (error) {
    if (progress === 'refused') {
      await transaction.failed()
      return value as Value
    }
    // An error before the completion: there was no COMMIT.
    const isOpen = progress === 'completed' && (transaction.isGivenUp || transactions.leavesOpen(error))
    if (isOpen && (await transaction.resolve())) return value as Value
    if (!isOpen) await transaction.rolledBack()
    throw error
  }
  transaction.committed()
  return value as Value
}

/** After BEGIN, because waiting for a connection would be a wait without renewals; the mark takes the snapshot. */
async function marked<Tx, Options>(
  tx: Tx,
  call: Call,
  transaction: RunTransaction,
  transactions: Transactions<Tx, Options>,
  options: Options | undefined,
): Promise<boolean> {
  if (transactions.needsRenewal(options)) await transaction.renew()
  transaction.stillOpen(call)
  const admitsRenewals = await transaction.inTime(transactions.mark(tx, transaction.token, transaction.idleMs))
  transaction.stillOpen(call)
  return admitsRenewals
}

/**
 * The progress of the last call of the work. `refused`: its answer is a failure. `completed`: only the COMMIT is left.
 */
type Progress = 'working' | 'refused' | 'completed'

/** Thrown to make the client roll back. */
export const ROLL_BACK = new Error('once-per-key: the answer is a failure, so the transaction is rolled back.')

/**
 * Commits intermediate writes of a run: its record is locked, made uncertain, and stays in flight. Resolves with the
 * result of the work, after the COMMIT.
 *
 * @throws IdempotencyError for misuse: nothing was committed. What the work or the database threw: if the error came
 * from the COMMIT and does not say whether it was committed, that is unknown.
 */
export async function step<Tx, Value, Options>(
  store: Store,
  context: unknown,
  transactions: Transactions<Tx, Options>,
  work: (tx: Tx) => Value | Promise<Value>,
  options: Options | undefined,
): Promise<Value> {
  const transaction = await RunTransaction.behind(usableRun(context, store), 'step')
  let value: Value | undefined
  let isDone = false
  let outcome: StepOutcome = 'rolled back'
  const inside = async (tx: Tx, call: Call): Promise<void> => {
    isDone = false
    await marked(tx, call, transaction, transactions, options)
    await transaction.locking()
    transaction.stillOpen(call)
    await transaction.inTime(transactions.step(tx, transaction.recordKey, transaction.token))
    transaction.stillOpen(call)
    void transactions.sessionEnd?.(tx)?.then(() => transaction.sessionEnded())
    value = await call.includes(async () => work(tx))
    transaction.stillOpen(call)
    isDone = true
  }
  try {
    await transaction.until(transactions.transaction((tx) => transaction.called((call) => inside(tx, call)), options))
    if (!isDone) throw transactionNotRun()
    outcome = 'committed'
  } catch (error) {
    if (isDone && (transaction.isGivenUp || transactions.leavesOpen(error))) outcome = 'unknown'
    throw error
  } finally {
    await transaction.stepOver(outcome)
  }
  return value as Value
}

/**
 * Completes the record of a run by hand, in the application's transaction. From then on the end of the run reads the
 * outcome from the record.
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
  run.mayCompleteByHand()
  const completion = run.completionByHand(answer)
  await run.lockLease()
  let isUnknown = false
  try {
    await within(run.storeTimeoutMs, (async () => complete(run.recordKey, completion))(), () => {
      isUnknown = true
    })
  } catch (error) {
    if (isUnknown)
      run.completedByHand() // It may still arrive, and be committed: the record tells.
    else run.notCompletedByHand()
    throw error
  }
  run.completedByHand()
}

/** @throws IdempotencyError `context_missing`, `context_foreign` */
export function usableRun(context: unknown, store: Store): Run {
  const run = (context as { readonly [RUN]?: Run } | null | undefined)?.[RUN]
  if (run === undefined) throw contextMissing(context)
  if (!isKeptIn(run.keptIn, store)) throw contextForeign()
  return run
}
