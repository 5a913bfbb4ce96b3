import type { AnswerSource } from './answer-source.js'
import { HandlerContext } from './context.js'
import type { CoreParts } from './core-parts.js'
import type { IdempotencyError } from './errors.js'
import type { FailureReason } from './events.js'
import { asKept } from './kept-in.js'
import type { MaybePromise } from './maybe-promise.js'
import { type Refused, SEND, type Settled } from './outcome.js'
import { type Failure, OwnedRecord, type Start } from './owned-record.js'
import type { Answer, IdempotencyRecord, PreviousOutcome } from './record.js'
import type { Completion, FailureKind, OpenTransaction } from './run-end.js'
import { leaseLost, runFailed } from './stop-reasons.js'
import type { Store } from './store.js'
import { transactionCommitted, transactionLate, transactionNested } from './transaction-errors.js'
import { unconfirmed } from './verdict.js'

/**
 * One run of an operation, from its claim to its end. Its methods are shared: functions of each run's own would keep the run,
 * and all that it can see, in V8's old space.
 *
 * It runs until somebody ends it (`#settled` is set). Then its end is on its way to its record.
 */
export class Run extends OwnedRecord {
  readonly previousOutcome: PreviousOutcome
  /** What its handler gets. */
  readonly context: HandlerContext
  /** What whoever ended it first was told. */
  #settled: MaybePromise<Settled> | undefined
  /** The handler has called `mayHaveEffect()`. */
  #mayHaveHadEffect = false
  #abort: AbortController | undefined
  /** Why the handler should stop; the first reason counts. */
  #stopReason: IdempotencyError | undefined
  /** Who makes its answer; a binding says so. */
  source: AnswerSource | undefined
  /** The transaction that is open: ends are offered to it. */
  #transaction: OpenTransaction | undefined
  /** A transaction has committed, and with it the record. */
  #hasCommitted = false
  /** Its record was completed inside a transaction of the application's: whether that was committed, is asked at the end. */
  #isCompletedByHand = false

  constructor(start: Start, core: CoreParts) {
    super(start, core)
    this.previousOutcome = start.acquired.previousOutcome
    this.context = new HandlerContext(this)
  }

  // --- for the handler

  /** A failure from now on leaves the outcome unknown. */
  mayHaveEffect(): void {
    this.#mayHaveHadEffect = true
  }

  /** A failure would leave the outcome unknown, whatever is said of it. */
  get isUncertain(): boolean {
    return this.ownership.uncertain || this.#mayHaveHadEffect
  }

  get signal(): AbortSignal {
    if (!this.isOver) this.lease.check() // A process that was stopped may hear its sockets before its timers.
    this.#abort ??= new AbortController()
    if (this.#stopReason !== undefined && !this.#abort.signal.aborted) this.#abort.abort(this.#stopReason)
    return this.#abort.signal
  }

  #stop(reason: IdempotencyError): void {
    this.#stopReason ??= reason
    this.#abort?.abort(this.#stopReason)
  }

  // --- its end

  /**
   * Ends the run with an answer; the record is completed first. `mustBeConfirmed`: where the store does not confirm that in
   * time, a refusal is to be sent in its place. Only the first end counts: a later one is told what the first was told.
   */
  complete(
    answer: Answer,
    mustBeConfirmed = this.core.options.unconfirmedSuccess === 'withhold',
  ): MaybePromise<Settled> {
    if (this.#transaction !== undefined) return this.#transaction.offer({ answer })
    this.#settled ??= this.#isCompletedByHand ? this.#verified() : this.store(answer, mustBeConfirmed)
    return this.#settled
  }

  /**
   * Ends the run as a failure, `because` of what. It is certain only where that is said, and neither `mayHaveEffect()` nor an
   * earlier attempt leaves its effect open.
   */
  fail(how: FailureKind, because: FailureReason): MaybePromise<Settled> {
    if (this.#transaction !== undefined) return this.#transaction.offer({ answer: null, how, because })
    this.#settled ??= this.#isCompletedByHand ? this.#verified() : this.#fail(how, because)
    return this.#settled
  }

  #fail(how: FailureKind, because: FailureReason): MaybePromise<Settled> {
    this.#stop(runFailed()) // First: a time limit may have answered in the place of a handler that still runs.
    return this.release(this.#judged(how, because))
  }

  /** What is uncertain stays so, whatever is said of this failure. */
  #judged(how: FailureKind, because: FailureReason): Failure {
    if (this.ownership.uncertain) return { uncertain: true, because: 'earlier_attempt' }
    if (this.#mayHaveHadEffect) return { uncertain: true, because: 'may_have_effect' }
    if (how === 'certainly') return { uncertain: false, because }
    return this.core.options.effects === 'declared'
      ? { uncertain: false, because: 'declared' }
      : { uncertain: true, because }
  }

  // --- in a transaction

  get token(): string {
    return this.ownership.token
  }

  get leaseMs(): number {
    return this.core.options.leaseMs
  }

  /** Where its record is kept. */
  get keptIn(): Store {
    return this.core.options.store
  }

  get isInTransaction(): boolean {
    return this.#transaction !== undefined
  }

  /** @throws IdempotencyError `transaction_nested`, `transaction_committed`, `transaction_late`: nothing was sent. */
  mayEnter(): void {
    if (this.#transaction !== undefined) throw transactionNested()
    if (this.#hasCommitted || this.#isCompletedByHand) throw transactionCommitted()
    if (this.#settled !== undefined) throw transactionLate()
  }

  enter(transaction: OpenTransaction): void {
    this.#transaction = transaction
  }

  left(): void {
    this.#transaction = undefined
  }

  /** @throws IdempotencyError `lease_lost`: the store did not confirm the renewal. */
  async renewAndPause(): Promise<void> {
    await this.lease.pause()
    if (!(await this.lease.confirm())) throw leaseLost()
  }

  /** From here on the lock of a transaction stands for the lease: no renewal is on its way, and none is sent. */
  async lockLease(): Promise<void> {
    await this.lease.pause()
    this.lease.lock()
  }

  resumeRenewals(): void {
    this.lease.resume()
  }

  completionOf(answer: Answer): Completion {
    const { token, fingerprint, retentionMs } = this.ownership
    return { token, retentionMs, answer: asKept(this.keptIn, this.recordKey, fingerprint, answer) }
  }

  /** @throws IdempotencyError `arguments_invalid`: it is no answer of this run's. */
  completionByHand(given: unknown): Completion {
    return this.completionOf(this.source === undefined ? (given as Answer) : this.source.answerOf(given))
  }

  committed(answer: Answer): Settled {
    this.#hasCommitted = true
    const settled = this.completed({ ok: true }, answer, false)
    this.#settled = settled
    return settled
  }

  /** Asks what became of a COMMIT that was not confirmed. A refusal: it is not known, and the run is over. */
  async outcomeOfCommit(): Promise<'committed' | 'rolled back' | Refused> {
    this.tell('completion_pending')
    const reply = await this.endByTransaction(this.#judged('perhaps', 'no_answer'))
    if (reply === null) {
      this.completionGivenUp()
      const refused = unconfirmed(this.core.options)
      this.#settled = refused
      return refused
    }
    if (this.ownAnswerIn(reply) !== null) return 'committed'
    // Its record has failed, or is another's: what the handler still answers finds that out.
    this.lease.giveUp()
    this.#stop(runFailed())
    return 'rolled back'
  }

  completedByHand(): void {
    this.lease.lock()
    this.#isCompletedByHand = true
  }

  /** What the record says, whatever the handler answered. */
  async #verified(): Promise<Settled> {
    const reply = await this.endByTransaction(this.#judged('perhaps', 'no_answer'))
    const answer = reply && this.ownAnswerIn(reply)
    if (answer !== null) {
      this.completed({ ok: true }, answer, false)
      return answer.body === null ? SEND : { action: 'replay', answer, isOwn: true }
    }
    this.tell(reply === null ? 'completion_given_up' : 'transaction_not_committed')
    this.end()
    return unconfirmed(this.core.options)
  }

  // --- what it hears of its lease

  renewalRefused(record: IdempotencyRecord | null): void {
    // Once the end was sent, a stale renewal may mean that it arrived: its own reply will tell.
    if (this.#settled === undefined && this.isTaken(record)) this.lease.take()
  }

  leaseLost(reason: 'lapsed' | 'taken'): void {
    const { scope, key } = this.identity
    this.emit({ type: 'lease_lost', scope, key, attempt: this.attempt, reason })
    this.#stop(leaseLost())
    this.core.duplicates?.leave(this.recordKey, this.ownership)
  }

  /** Its time is over, and its lease is gone: whatever the handler still does, nobody waits for it. */
  leaseOver(): void {
    if (this.#settled === undefined && this.#transaction?.isCompleting !== true) this.end()
  }
}
