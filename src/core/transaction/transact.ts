import { contextMissingError, misuseError, operationTakenError, transactionsMissingError } from '../misuse.js'
import type { Entered, Entry } from '../record/looked.js'
import type { Answer, StepChange } from '../record/record.js'
import { RUN } from '../run/context.js'
import type { Run } from '../run/run.js'
import type { Completion, Finish, UnclaimedKey } from '../run/run-end.js'
import type { RecordedResult, StepEnd } from '../run/step.js'
import { isKeptIn, type Store } from '../store/store.js'
import { RunTransaction, toCompletion } from './run-transaction.js'
import { isEndByWork, limitStatement, readResult, type WorkCall } from './transaction-call.js'

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
  /**
   * Locks the record until the transaction ends, and makes it uncertain. Resolves with what is recorded of the step; `null`:
   * no result. Rejects unless the token owns it.
   */
  step(tx: Tx, recordKey: string, token: string, label: string): Promise<RecordedResult>
  /** Records the result of a step. Rejects as `step` does. */
  stepDone(tx: Tx, recordKey: string, token: string, change: StepChange): Promise<void>
  /**
   * The last statement: completes the record. Rejects unless the token owns it, this is the marked transaction, and something was
   * written in it before; `allowEmpty`: or nothing was.
   */
  complete(tx: Tx, recordKey: string, completion: Completion, allowEmpty: boolean): Promise<void>
  /**
   * The first statement in a run whose transaction takes the key: takes it and its lock until the transaction ends, only from the state
   * that `entry` shows; marks the transaction, and bounds its inactivity, as `mark` does. Above READ COMMITTED it must not read.
   */
  enter?(tx: Tx, recordKey: string, entry: Entry): Promise<Entered>
  /**
   * The last statement of such a run: completes the record that is not there, or that the look has shown. Rejects as `complete` does,
   * and with `operationTaken()` if the record is another one: then the transaction cannot be committed.
   */
  finish?(tx: Tx, recordKey: string, finish: Finish, allowEmpty: boolean): Promise<void>
  /** Whether COMMIT is sent together with the last statement: from then on it may be carried out, whatever is waited for. */
  readonly commitsWithLast?: boolean
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
 * @throws IdempotencyError for misuse, `lease_lost` and `store_failed`: nothing was committed. `operation_taken`: another
 * attempt has the key of a run that claimed nothing. What the work threw, or the database at the completion or COMMIT: it
 * was rolled back, the answer was discarded, and the run continues. If the outcome of a COMMIT is still unknown after
 * `maxRunMs`, the error of the COMMIT; the client was told to retry.
 */
export async function transact<Tx, Value, Options>(
  store: Store,
  context: unknown,
  transactions: Transactions<Tx, Options>,
  work: (tx: Tx) => Value | Promise<Value>,
  options: Options | undefined,
  allowEmpty = false,
): Promise<Value> {
  const run = requireRun(context, store)
  const { unclaimed } = run
  for (;;) {
    for (let settled = run.follow(); settled !== undefined; settled = run.follow()) await settled
    const transaction = new RunTransaction(run, 'transaction')
    const way =
      unclaimed === undefined
        ? createClaimedProtocol(run, transaction, transactions, options, allowEmpty)
        : createUnclaimedProtocol(run, unclaimed, transaction, transactions, allowEmpty)
    const done = await transactOnce(run, transaction, way, transactions, work, options)
    if (done !== TAKEN) return done.value
    // It was rolled back, and its connection given back, so that waiting holds none.
    if (unclaimed === undefined || !(await unclaimed.waitUntilFree())) {
      unclaimed?.giveUp()
      throw operationTakenError()
    }
  }
}

/** What a run sends in its transaction before the work and after it. */
interface TransactionProtocol<Tx> {
  /** Resolves with whether the transaction may go on. */
  enters(tx: Tx, call: WorkCall): Promise<boolean>
  finishes(tx: Tx, completion: Completion): Promise<void>
}

/** Another attempt has the key, so the transaction was rolled back. */
const TAKEN = Symbol('taken')

async function transactOnce<Tx, Value, Options>(
  run: Run,
  transaction: RunTransaction,
  way: TransactionProtocol<Tx>,
  transactions: Transactions<Tx, Options>,
  work: (tx: Tx) => Value | Promise<Value>,
  options: Options | undefined,
): Promise<{ readonly value: Value } | typeof TAKEN> {
  let value: Value | undefined
  let progress = 'working' as Progress
  const inside = async (tx: Tx, call: WorkCall): Promise<void> => {
    progress = 'working'
    if (!(await way.enters(tx, call))) {
      progress = 'taken'
      throw operationTakenError()
    }
    value = await transaction.runWork(call, () => work(tx), transactions.sessionEnd?.(tx))
    const completion = await transaction.readCompletion(value)
    transaction.assertStillOpen(call)
    if (completion === null) {
      progress = 'refused'
      throw ROLL_BACK
    }
    await transaction.pauseLeaseAndLock(call)
    if (transactions.commitsWithLast === true) progress = 'completed'
    await transaction.waitForStatement(call, way.finishes(tx, completion)).catch((error) => {
      if ((error as { readonly code?: unknown } | null)?.code === 'operation_taken') progress = 'taken'
      throw error
    })
    progress = 'completed'
  }
  try {
    await transaction.waitForClient(
      transactions.transaction((tx) => transaction.runWorkCall((call) => inside(tx, call)), options),
    )
    if (progress !== 'completed') throw misuseError('transaction_not_run')
  } catch (error) {
    // Unless the client has committed it all the same.
    if (progress === 'refused' && !isEndByWork(error)) {
      await transaction.onRolledBack()
      return { value: value as Value }
    }
    // An error before the completion: there was no COMMIT.
    const isOpen = progress === 'completed' && (transaction.isGivenUp || transactions.leavesOpen(error))
    if (isOpen && (await transaction.resolve())) return { value: value as Value }
    if (isEndByWork(error)) run.onEndedByWork()
    if (!isOpen) await transaction.onRolledBack()
    if (progress === 'taken') return TAKEN
    throw error
  }
  transaction.onCommitted()
  return { value: value as Value }
}

/** The key was claimed before: the transaction is marked, and completes the record that its token owns. */
function createClaimedProtocol<Tx, Options>(
  run: Run,
  transaction: RunTransaction,
  transactions: Transactions<Tx, Options>,
  options: Options | undefined,
  allowEmpty: boolean,
): TransactionProtocol<Tx> {
  return {
    async enters(tx, call) {
      if (await markTransaction(tx, call, run, transaction, transactions, options)) run.lease.resume()
      return true
    },
    finishes: (tx, completion) => transactions.complete(tx, run.recordKey, completion, allowEmpty),
  }
}

/** A fence holds the lock for an instant: if the lock is taken although there is no record, it is tried once more. */
const FENCE_MS = 10

/** Nothing was claimed: the transaction takes the key. */
function createUnclaimedProtocol<Tx, Options>(
  run: Run,
  key: UnclaimedKey,
  transaction: RunTransaction,
  transactions: Transactions<Tx, Options>,
  allowEmpty: boolean,
): TransactionProtocol<Tx> {
  const { recordKey } = run
  const { enter, finish } = transactions
  if (enter === undefined || finish === undefined)
    throw transactionsMissingError('the store, with `enter` and `finish`,')
  return {
    async enters(tx, call) {
      const { entry } = key
      let entered = await transaction.waitForStatement(call, enter.call(transactions, tx, recordKey, entry))
      if (entered === 'locked') {
        await new Promise((resolve) => setTimeout(resolve, FENCE_MS))
        transaction.assertStillOpen(call)
        entered = await transaction.waitForStatement(call, enter.call(transactions, tx, recordKey, entry))
      }
      if (entered === 'entered') key.enter()
      return entered === 'entered'
    },
    finishes: (tx, completion) => finish.call(transactions, tx, recordKey, toFinish(run, key, completion), allowEmpty),
  }
}

/** The completion of a record that no claim has made. */
export function toFinish({ fingerprint }: Run, { entry }: UnclaimedKey, completion: Completion): Finish {
  const { seen, attempt } = entry
  return { ...completion, fingerprint, seen, attempt }
}

/** After BEGIN, because waiting for a connection would be a wait without renewals; the mark takes the snapshot. */
async function markTransaction<Tx, Options>(
  tx: Tx,
  call: WorkCall,
  run: Run,
  transaction: RunTransaction,
  transactions: Transactions<Tx, Options>,
  options: Options | undefined,
): Promise<boolean> {
  if (transactions.needsRenewal(options)) await run.lease.renewAndPause()
  transaction.assertStillOpen(call)
  return transaction.waitForStatement(call, transactions.mark(tx, run.token, run.options.leaseMs))
}

/**
 * The progress of the last call of the work. `refused`: its answer is a failure. `taken`: another attempt has the key. `completed`: only
 * the COMMIT is left.
 */
type Progress = 'working' | 'refused' | 'taken' | 'completed'

/** Thrown to make the client roll back. */
export const ROLL_BACK = new Error('once-per-key: the answer is a failure, so the transaction is rolled back.')

/**
 * A step of a run whose result commits with its writes: its record is locked, made uncertain, and stays in flight. Resolves
 * with the result, after the COMMIT; one that an attempt has recorded is returned without a call of the work.
 *
 * @throws IdempotencyError for misuse: nothing was committed. What the work or the database threw: if the error came
 * from the COMMIT and does not say whether it was committed, that is unknown.
 */
export async function step<Tx, Options>(
  store: Store,
  context: unknown,
  label: string,
  transactions: Transactions<Tx, Options>,
  work: (tx: Tx) => unknown,
  options: unknown,
): Promise<unknown> {
  const run = requireRun(context, store)
  const { codec, clients } = readResult<Options>(options)
  for (let settled = run.follow(); settled !== undefined; settled = run.follow()) await settled
  const taken = run.beginStepInTransaction(label, work, codec)
  if ('recorded' in taken) return taken.recorded
  let outcome: StepEnd = 'rolled back'
  let transaction: RunTransaction | undefined
  let isDone = false
  try {
    const ready = taken.ready()
    if (ready !== undefined) await ready // Else in the same turn: what is answered after it waits for it.
    const opened = new RunTransaction(run, 'step')
    transaction = opened
    const inside = async (tx: Tx, call: WorkCall): Promise<void> => {
      isDone = false
      await markTransaction(tx, call, run, opened, transactions, clients)
      await opened.pauseLeaseAndLock(call)
      const { recordKey, token } = run
      const recorded = await opened.waitForStatement(call, transactions.step(tx, recordKey, token, label))
      void transactions.sessionEnd?.(tx)?.then(() => opened.onSessionEnd())
      if (recorded !== null) taken.found(recorded)
      else {
        const change = taken.made(await call.trackPart(async () => work(tx)))
        opened.assertStillOpen(call)
        await opened.waitForStatement(call, transactions.stepDone(tx, recordKey, token, change))
      }
      isDone = true
    }
    await opened.waitForClient(
      transactions.transaction((tx) => opened.runWorkCall((call) => inside(tx, call)), clients),
    )
    if (!isDone) throw misuseError('transaction_not_run')
    outcome = 'committed'
  } catch (error) {
    if (isDone && (transaction?.isGivenUp === true || transactions.leavesOpen(error))) outcome = 'unknown'
    throw error
  } finally {
    taken.over(outcome) // First: an end of the run that was offered meanwhile counts the steps that still run.
    await transaction?.endStep(outcome)
  }
  return taken.result()
}

/**
 * Completes the record of a run by hand, in the application's transaction. From then on the end of the run reads the
 * outcome from the record. `isAwaited`: whether `complete` may send more; once it took too long, the application may have ended the
 * transaction.
 *
 * @throws IdempotencyError for misuse; what `complete` rejects with: the transaction cannot be committed.
 */
export async function completeByHand(
  store: Store,
  context: unknown,
  answer: unknown,
  complete: (recordKey: string, completion: Completion, isAwaited: () => boolean) => Promise<void> | void,
): Promise<void> {
  const run = requireRun(context, store)
  const given = readAnswerByHand(run, answer)
  const completion = toCompletion(run, given)
  await run.lease.pauseAndLock()
  let isUnknown = false
  const sent = async () => complete(run.recordKey, completion, () => !isUnknown)
  try {
    await limitStatement(run.options.storeTimeoutMs, sent(), () => {
      isUnknown = true
    })
  } catch (error) {
    // It may still arrive, and be committed: the record tells.
    if (isUnknown) run.completeByHand(given)
    else run.refuseByHand()
    throw error
  }
  run.completeByHand(given)
}

/** @throws IdempotencyError for misuse, and `arguments_invalid`: the run cannot have this answer. Nothing was sent. */
export function readAnswerByHand(run: Run, answer: unknown): Answer {
  run.assertClaimed('completeIn')
  run.assertMayCommit()
  return run.source === undefined ? (answer as Answer) : run.source.toStoredAnswer(answer)
}

/** @throws IdempotencyError `context_missing`, `context_foreign` */
export function requireRun(context: unknown, store: Store): Run {
  const run = (context as { readonly [RUN]?: Run } | null | undefined)?.[RUN]
  if (run === undefined) throw contextMissingError(context)
  if (!isKeptIn(run.options.store, store)) throw misuseError('context_foreign')
  return run
}
