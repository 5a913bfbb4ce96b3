import { misuseError, operationTakenError } from '../misuse.js'
import type { Entry } from '../record/looked.js'
import type { StepChange } from '../record/record.js'
import type { Completion, Finish } from '../run/run-end.js'
import type { RecordedResult, StepEnd } from '../run/step.js'
import type { Store } from '../store/store.js'
import { RunTransaction, toCompletion } from './run-transaction.js'
import { ROLL_BACK, readAnswerByHand, requireRun, toFinish } from './transact.js'
import { isEndByWork } from './transaction-call.js'

/** What a store provides if its transactions are synchronous, on one connection. */
export interface SynchronousTransactions {
  /**
   * Opens a transaction as soon as the database allows it, and in the same turn calls the work and commits; if the work
   * or the COMMIT throws, rolls back and rejects.
   */
  transaction(work: () => void): Promise<void>
  /** Makes the record uncertain. Returns what is recorded of the step; `null`: no result. Throws unless the token owns it. */
  step(recordKey: string, token: string, label: string): RecordedResult
  /** Records the result of a step. Throws as `step` does. */
  stepDone(recordKey: string, token: string, change: StepChange): void
  /** Completes the record. Throws unless the token owns it, and something was written before; `allowEmpty`: or nothing was. */
  complete(recordKey: string, completion: Completion, allowEmpty: boolean): void
  /** Like `Transactions.enter`: whether the state is still the one that the look has shown. */
  enter?(recordKey: string, entry: Entry): boolean
  /** Like `Transactions.finish`. */
  finish?(recordKey: string, finish: Finish, allowEmpty: boolean): void
}

/** Like `transact`, for a store on whose connection any other statement would join an open transaction. */
export async function transactAtOnce<Value>(
  store: Store,
  context: unknown,
  transactions: SynchronousTransactions,
  work: () => Value,
  allowEmpty = false,
): Promise<Value> {
  const run = requireRun(context, store)
  const { unclaimed } = run
  const transaction = new RunTransaction(run, 'transaction')
  let value: Value | undefined
  let isRefused = false
  let isTaken = false
  try {
    await transaction.waitForClient(
      transactions.transaction(() => {
        transaction.openAtOnce()
        isTaken = unclaimed !== undefined && transactions.enter?.(run.recordKey, unclaimed.entry) !== true
        if (isTaken) throw operationTakenError()
        unclaimed?.enter()
        value = requireSynchronous(work())
        const completion = requireSynchronous(transaction.readCompletion(value)) as Completion | null
        isRefused = completion === null
        if (completion === null) throw ROLL_BACK
        if (unclaimed === undefined) transactions.complete(run.recordKey, completion, allowEmpty)
        else transactions.finish?.(run.recordKey, toFinish(run, unclaimed, completion), allowEmpty)
      }),
    )
  } catch (error) {
    if (isEndByWork(error)) run.onEndedByWork()
    await transaction.onRolledBack()
    if (isTaken) unclaimed?.giveUp()
    if (!isRefused) throw error
    return value as Value
  }
  transaction.onCommitted()
  return value as Value
}

/** Like `step`, for such a store. */
export async function stepAtOnce(
  store: Store,
  context: unknown,
  label: string,
  transactions: SynchronousTransactions,
  work: () => unknown,
  options: unknown,
): Promise<unknown> {
  const run = requireRun(context, store)
  const taken = run.beginStepInTransaction(label, work, options)
  if ('recorded' in taken) return taken.recorded
  let outcome: StepEnd = 'rolled back'
  let transaction: RunTransaction | undefined
  try {
    const ready = taken.ready()
    if (ready !== undefined) await ready
    const opened = new RunTransaction(run, 'step')
    transaction = opened
    await opened.waitForClient(
      transactions.transaction(() => {
        opened.openAtOnce()
        const { recordKey, token } = run
        const recorded = transactions.step(recordKey, token, label)
        if (recorded !== null) taken.found(recorded)
        else transactions.stepDone(recordKey, token, taken.made(requireSynchronous(work())))
      }),
    )
    outcome = 'committed'
  } finally {
    taken.over(outcome) // First, as in `step`.
    await transaction?.endStep(outcome)
  }
  return taken.result()
}

/**
 * Like `completeByHand`, for such a store. Synchronous, because other statements would join a transaction that waits.
 */
export function completeByHandAtOnce(
  store: Store,
  context: unknown,
  answer: unknown,
  complete: (recordKey: string, completion: Completion) => void,
): void {
  const run = requireRun(context, store)
  const given = readAnswerByHand(run, answer)
  complete(run.recordKey, toCompletion(run, given))
  run.completeByHand(given)
}

/** @throws IdempotencyError `transaction_asynchronous` */
function requireSynchronous<Value>(value: Value): Value {
  const mayHaveThen = typeof value === 'object' && value !== null && 'then' in value
  if (mayHaveThen && typeof value.then === 'function') {
    value.then(undefined, () => {}) // Nobody waits for it.
    throw misuseError('transaction_asynchronous')
  }
  return value
}
