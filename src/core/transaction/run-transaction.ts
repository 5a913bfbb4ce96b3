import { getMonotonicMs, waitBegan, waitEnded } from '../calls/timers.js'
import { createUnconfirmedRefusal, type RunEnd } from '../events/refusal.js'
import { type MaybePromise, whenever } from '../maybe-promise.js'
import { misuseError, transactionLateError, transactionTimedOutError } from '../misuse.js'
import type { Answer } from '../record/record.js'
import type { Run } from '../run/run.js'
import { type Completion, type OfferedEnd, OfferedEnds, type OpenTransaction } from '../run/run-end.js'
import type { StepEnd } from '../run/step.js'
import { toKeptAnswer } from '../store/store.js'
import { ClientWait, limitStatement, WorkCall } from './transaction-call.js'

/**
 * - `waiting`: the work was not called: nothing was begun, as far as is known.
 * - `open`: the client called the work, or will call it again.
 * - `left behind`: it was rolled back, but its work still runs. What that answers is discarded.
 * - `over`: its outcome was told.
 */
type State = 'waiting' | 'open' | 'left behind' | 'over'

/** Work that waits for a second connection while each holder of one does so never ends, and nothing else tells of it. */
const OVERDUE =
  'The transaction was not over within `maxRunMs` (its work may wait for a second connection of the same pool: use its `tx` alone)'

/**
 * One transaction of a run, from before BEGIN until its outcome is known. While it is open the run does not end: ends
 * are offered to the transaction and settled afterwards. `transact.ts` calls these methods in order.
 */
export class RunTransaction implements OpenTransaction {
  /** The record is completed in the transaction: until the transaction ends, the record's lock replaces the lease. */
  isCompleting = false
  readonly #run: Run
  /** Whether the transaction contains the answer: that of a step does not. */
  readonly #holdsAnswer: boolean
  #state: State = 'waiting'
  /** The last call of the work. */
  #call: WorkCall | undefined
  readonly #offered = new OfferedEnds()
  /** Called when an end is offered. */
  #onOffered: (() => void) | undefined
  readonly #wait = new ClientWait()
  /** `maxRunMs` has passed. */
  #isOverdue = false
  readonly #timer: ReturnType<typeof setTimeout>
  /** What the work has resolved with is being read. */
  #isResolving = false
  /** Only with work that was left behind: whether what is answered meanwhile is the handler's own. */
  #isHandlers = false
  /** How many transactions wait for the work that was left behind, and what wakes them. */
  #followers = 0
  #left: { readonly over: Promise<void>; resolve(): void } | undefined

  /** @throws IdempotencyError for misuse: nothing was sent. */
  constructor(run: Run, kind: 'transaction' | 'step') {
    run.assertMayTransact()
    this.#holdsAnswer = kind === 'transaction'
    if (this.#holdsAnswer) run.source?.onTransactionBegin()
    this.#run = run
    run.enter(this)
    waitBegan()
    this.#timer = setTimeout(() => this.#onOverdue(), Math.max(0, run.lease.until - getMonotonicMs()))
  }

  get isLeftBehind(): boolean {
    return this.#state === 'left behind'
  }

  follow(): Promise<void> | undefined {
    if (!this.isLeftBehind) return undefined
    this.#followers++
    return this.#left?.over
  }

  /**
   * Offers an end of the run while the transaction is open: the first one counts. A failure is final, since it may be the error page
   * for a handler that has stopped waiting: nobody would make another answer. It need not wait for a transaction that was not begun,
   * or was rolled back.
   */
  offer(end: OfferedEnd): Promise<RunEnd> {
    const told = this.#offered.add(end)
    if (this.#offered.areFailed) this.#run.stopWork()
    this.#onOffered?.()
    if (this.#offered.areFailed && this.#state !== 'open') {
      if (this.#state === 'waiting') this.#wait.giveUp(transactionLateError())
      void this.#endRun()
    }
    return told
  }

  // --- waiting for the client

  /**
   * Settles as what the client does, or rejects when nobody waits for the client any longer: the run has failed before BEGIN, the
   * database has not answered a statement of ours in time or has ended the session, or `maxRunMs` has passed. What the client does
   * later cannot commit, unless the COMMIT is on its way.
   */
  waitForClient<Value>(client: Promise<Value>): Promise<Value> {
    return this.#wait.waitUntilGivenUp(client)
  }

  /** Nobody waits for the client any longer. */
  get isGivenUp(): boolean {
    return this.#wait.givenUp !== undefined
  }

  /**
   * Settles as a statement of ours in this call does, or rejects when its time limit has passed: nobody waits for the client
   * either.
   *
   * @throws IdempotencyError as `assertStillOpen` does, after the statement.
   */
  async waitForStatement<Value>(call: WorkCall, statement: Promise<Value>): Promise<Value> {
    const value = await limitStatement(this.#run.options.storeTimeoutMs, statement, (error) => this.#wait.giveUp(error))
    this.assertStillOpen(call)
    return value
  }

  /** The database has ended the session that has locked the record. */
  onSessionEnd(): void {
    this.#wait.giveUp(transactionTimedOutError('The database ended the session of the transaction'))
  }

  #onOverdue(): void {
    this.#isOverdue = true
    this.#wait.giveUp(transactionTimedOutError(OVERDUE))
    if (this.#state === 'left behind') void this.#endOverdue()
  }

  /**
   * Called after BEGIN, each time that the client calls the work; waits for an earlier call that still runs.
   *
   * @throws IdempotencyError: it was given up. Nothing was sent.
   */
  runWorkCall(inside: (call: WorkCall) => Promise<void>): Promise<void> {
    const before = this.#call
    const call = new WorkCall()
    this.#call = call
    return call.trackPart(async () => {
      await before?.settled
      this.assertStillOpen(call)
      this.openAtOnce()
      if (before !== undefined) this.#onUnlocked()
      await inside(call)
    })
  }

  /** The transaction of the earlier call has ended, and its lock: the lease counts again. */
  #onUnlocked(): void {
    this.isCompleting = false
    this.#run.lease.resume()
  }

  /** The same for a client that calls the work once, and synchronously. */
  openAtOnce(): void {
    if (this.#wait.givenUp !== undefined) throw this.#wait.givenUp
    const isAgain = this.#state === 'open' && this.#holdsAnswer && !this.#offered.areFailed
    if (isAgain && this.#run.source?.hasStopped === true) throw misuseError('transaction_left_behind')
    if (isAgain) this.#discard()
    this.#state = 'open'
  }

  /**
   * Called behind everything that was waited for.
   *
   * @throws IdempotencyError: nobody waits for this call any longer, so it must be rolled back.
   */
  assertStillOpen(call: WorkCall): void {
    if (this.#wait.givenUp !== undefined) throw this.#wait.givenUp
    if (this.#call !== call || this.#state === 'left behind' || this.#state === 'over')
      throw misuseError('transaction_left_behind')
  }

  /**
   * Resolves with the result of the work. Without the session nothing can be committed: work that has answered, and does not
   * resolve at once, may wait for its own response.
   *
   * @throws IdempotencyError `transaction_waiting`: it must be rolled back.
   */
  async runWork<Value>(call: WorkCall, work: () => Value | Promise<Value>, sessionEnd?: Promise<void>): Promise<Value> {
    const running = call.trackPart(async () => work())
    const value = await (sessionEnd === undefined
      ? running
      : Promise.race([running, sessionEnd.then(() => this.#rejectStuckWork())]))
    this.assertStillOpen(call)
    return value
  }

  async #rejectStuckWork(): Promise<never> {
    if (this.#offered.end === undefined) await new Promise<void>((resolve) => (this.#onOffered = resolve))
    await new Promise((resolve) => setTimeout(resolve, 0))
    throw misuseError('transaction_waiting')
  }

  /**
   * The work has resolved. Returns what to complete the record with, as the last statement; `null`: the answer is a
   * failure, so the transaction must be rolled back.
   *
   * @throws IdempotencyError `transaction_unanswered`, `transaction_streamed`: it must be rolled back.
   */
  readCompletion(value: unknown): MaybePromise<Completion | null> {
    this.#isResolving = true
    return whenever(this.#run.source?.onWorkResolved(value), () => {
      this.#isResolving = false
      const { end } = this.#offered
      if (end === undefined) throw misuseError('transaction_unanswered')
      const { answer } = end
      return answer === null ? null : toCompletion(this.#run, answer)
    })
  }

  /**
   * Called before a statement that locks the record: waits for renewals to end; then the lock replaces the lease.
   *
   * @throws IdempotencyError as `assertStillOpen` does.
   */
  async pauseLeaseAndLock(call: WorkCall): Promise<void> {
    await this.#run.lease.pauseAndLock()
    this.isCompleting = true
    this.assertStillOpen(call)
  }

  /** The COMMIT was confirmed: the record is completed, and the answer is sent. */
  onCommitted(): void {
    const answer = this.#offered.end?.answer as Answer
    void this.#close(() => this.#run.commit(answer))
  }

  /** It was rolled back, or never begun: the answer is discarded, and the run continues, unless that is a failure. */
  async onRolledBack(): Promise<void> {
    if (this.#state === 'over') return
    if (this.#offered.areFailed) return this.#endRun()
    if (this.#isOverdue || this.#run.source?.hasStopped === true) return this.#withdraw()
    this.#discard()
    this.#leave()
  }

  /**
   * It is unknown whether it was committed: asks the store until that is proved, or `maxRunMs` has passed. `false`: it
   * was rolled back, and the next attempt may run; or it is still unknown, and the client is told to retry.
   */
  async resolve(): Promise<boolean> {
    const outcome = await this.#run.findCommitOutcome(this.#offered.end?.answer as Answer)
    if (outcome === 'committed') {
      this.onCommitted()
      return true
    }
    if (outcome === 'rolled back') await this.onRolledBack()
    else void this.#close(() => createUnconfirmedRefusal(this.#run.options))
    return false
  }

  /**
   * A step has ended. Unless it was rolled back its writes may exist, so any failure from now on leaves the outcome unknown. An
   * answer that was given meanwhile is sent only if they do exist: it may speak of them.
   */
  async endStep(outcome: StepEnd): Promise<void> {
    const run = this.#run
    if (this.#state === 'over') return
    if (outcome !== 'rolled back') run.mayHaveEffect()
    if (this.#isOverdue) return this.#endOverdue()
    const { end } = this.#offered
    if (end === undefined && outcome === 'rolled back') return this.#leave()
    if (end === undefined || end.answer === null || outcome === 'committed') return this.#endRun()
    await this.#withdraw()
  }

  /** `maxRunMs` has passed, and nothing was committed: whatever else is answered, the client is told to retry. */
  async #endOverdue(): Promise<void> {
    if (this.#offered.areFailed) return this.#endRun()
    await this.#withdraw()
  }

  /** Ends the run as a failure in place of its answer. */
  async #withdraw(): Promise<void> {
    await this.#close(() => this.#run.withdraw())
  }

  /** Ends the run with the offered end; without one the run continues. */
  async #endRun(): Promise<void> {
    const run = this.#run
    const { end } = this.#offered
    if (end === undefined) return this.#close()
    await this.#close(() => (end.answer === null ? run.fail(end.how, end.because, end.kept) : run.complete(end.answer)))
  }

  /** Discards the answer: whoever ended the run gets the result of the final answer, or none. */
  #discard(): void {
    this.isCompleting = false
    this.#offered.discard()
    if (!this.#offered.areFailed) this.#run.source?.onRollback()
  }

  /** It was rolled back: the run continues, as soon as the work has settled. */
  #leave(): void {
    const call = this.#call
    if (this.#offered.areFailed) return void this.#endRun()
    if (call?.isRunning !== true) return void this.#close()
    this.#state = 'left behind'
    let resolve!: () => void
    const over = new Promise<void>((wake) => (resolve = wake))
    this.#left = { over, resolve }
    this.isCompleting = false
    const isSeparate = this.#run.source?.onWorkLeftBehind() ?? false
    this.#isHandlers = isSeparate && !this.#isResolving
    this.#run.lease.resume()
    void call.settled.then(() => this.#onWorkSettled())
  }

  /** What was answered while it ran may be its own, which was rolled back, or the handler's: nobody can tell. */
  async #onWorkSettled(): Promise<void> {
    if (this.#state !== 'left behind') return
    if (this.#offered.end !== undefined && this.#isHandlers) return this.#endRun()
    if (this.#offered.end !== undefined && (this.#followers === 0 || !this.#holdsAnswer)) return this.#withdraw()
    if (this.#followers > 0) this.#discard()
    await this.#close()
  }

  /** From now on ends go to the run, and its lease is renewed again. Whoever has offered one is told how the run `ends`. */
  async #close(ends?: () => MaybePromise<RunEnd>): Promise<void> {
    if (this.#state === 'over') return
    this.#state = 'over'
    clearTimeout(this.#timer)
    this.isCompleting = false
    waitEnded()
    this.#run.leave()
    if (this.#holdsAnswer) this.#run.source?.onTransactionEnd()
    const settled = ends?.()
    this.#run.lease.resume()
    this.#left?.resolve()
    if (settled !== undefined) this.#offered.tell(await settled)
  }
}

/** What the store completes the record of a run with. */
export function toCompletion({ token, fingerprint, recordKey, options }: Run, answer: Answer): Completion {
  const { store, retentionMs } = options
  return { token, retentionMs, answer: toKeptAnswer(store, recordKey, fingerprint, answer) }
}
