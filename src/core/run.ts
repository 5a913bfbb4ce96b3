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
 * One run of an operation, from its claim to its end. Methods are on the prototype: functions of each run would keep
 * the run, and everything that they reference, in V8's old space.
 *
 * The run is active until it is ended (`#settled` is set). Then its end is being stored.
 */
export class Run extends OwnedRecord {
  readonly previousOutcome: PreviousOutcome
  /** The context that the handler receives. */
  readonly context: HandlerContext
  /** The result of the first end. */
  #settled: MaybePromise<Settled> | undefined
  /** The handler has called `mayHaveEffect()`. */
  #mayHaveHadEffect = false
  #abort: AbortController | undefined
  /** Why the handler should stop; the first reason counts. */
  #stopReason: IdempotencyError | undefined
  /** Makes the answer; set by a binding. */
  source: AnswerSource | undefined
  /** The open transaction: ends are offered to it. */
  #transaction: OpenTransaction | undefined
  /** A transaction has committed, and the record with it. */
  #hasCommitted = false
  /**
   * The record was completed inside the application's transaction: whether that was committed is checked at the end.
   */
  #isCompletedByHand = false

  constructor(start: Start, core: CoreParts) {
    super(start, core)
    this.previousOutcome = start.acquired.previousOutcome
    this.context = new HandlerContext(this)
  }

  // --- for the handler

  /** Any failure from now on leaves the outcome unknown. */
  mayHaveEffect(): void {
    this.#mayHaveHadEffect = true
  }

  /** Whether any failure would leave the outcome unknown. */
  get isUncertain(): boolean {
    return this.ownership.uncertain || this.#mayHaveHadEffect
  }

  get signal(): AbortSignal {
    if (!this.isOver) this.lease.check() // After a suspension of the process, sockets may be served before timers.
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
   * Ends the run with an answer; the record is completed first. `mustBeConfirmed`: if the store does not confirm that
   * in time, a refusal is sent instead. Only the first end counts: later calls get its result.
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
   * Ends the run as a failure, with its reason. It is certain only with `'certainly'`, without `mayHaveEffect()`, and
   * if no earlier attempt may have had its effect.
   */
  fail(how: FailureKind, because: FailureReason): MaybePromise<Settled> {
    if (this.#transaction !== undefined) return this.#transaction.offer({ answer: null, how, because })
    this.#settled ??= this.#isCompletedByHand ? this.#verified() : this.#fail(how, because)
    return this.#settled
  }

  /** Ends the run as a failure in place of its answer, which may be untrue: the client is told to retry. */
  async withdraw(): Promise<Refused> {
    await this.fail('perhaps', 'no_answer')
    return unconfirmed(this.core.options)
  }

  #fail(how: FailureKind, because: FailureReason): MaybePromise<Settled> {
    this.#stop(runFailed()) // First, because a time limit may have responded while the handler still runs.
    return this.release(this.#judged(how, because))
  }

  /** An uncertain attempt stays uncertain, whatever its failure. */
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

  /** The store that keeps the record. */
  get keptIn(): Store {
    return this.core.options.store
  }

  /** An open transaction will end with a failure: its work should stop. */
  willFail(): void {
    this.#stop(runFailed())
  }

  get isInTransaction(): boolean {
    return this.#transaction !== undefined
  }

  /** @throws IdempotencyError `transaction_nested`, `transaction_committed`, `transaction_late`: nothing was sent. */
  mayEnter(): void {
    if (this.#isCompletedByHand) throw transactionCommitted()
    this.mayCompleteByHand()
  }

  /** The same, but again as well, because the application's transaction may have been rolled back: the record tells. */
  mayCompleteByHand(): void {
    if (this.#transaction !== undefined) throw transactionNested()
    if (this.#hasCommitted) throw transactionCommitted()
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

  /**
   * From now on the lock of a transaction replaces the lease: waits for a renewal that is being sent, and sends no
   * more.
   */
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

  /** @throws IdempotencyError `arguments_invalid`: the run cannot have this answer. */
  completionByHand(given: unknown): Completion {
    return this.completionOf(this.source === undefined ? (given as Answer) : this.source.answerOf(given))
  }

  committed(answer: Answer): Settled {
    this.#hasCommitted = true
    const settled = this.completed({ ok: true }, answer, false)
    this.#settled = settled
    return settled
  }

  /** Finds out how an unconfirmed COMMIT ended. A refusal means that it is unknown, and the run is over. */
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
    // Its record has failed or belongs to another attempt; the handler learns that when it responds.
    this.lease.giveUp()
    this.#stop(runFailed())
    return 'rolled back'
  }

  /** The application's transaction was refused. */
  notCompletedByHand(): void {
    if (!this.#isCompletedByHand) this.resumeRenewals() // Otherwise an earlier one may be open or committed.
  }

  completedByHand(): void {
    this.lease.lock()
    this.#isCompletedByHand = true
  }

  /** What the record says, whatever the handler responded. */
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
    // After the end was sent, a stale renewal may mean that it arrived: its own reply decides.
    if (this.#settled === undefined && this.isTaken(record)) this.lease.take()
  }

  leaseLost(reason: 'lapsed' | 'taken'): void {
    const { scope, key } = this.identity
    this.emit({ type: 'lease_lost', scope, key, attempt: this.attempt, reason })
    this.#stop(leaseLost())
    this.core.duplicates?.leave(this.recordKey, this.ownership)
  }

  /** `maxRunMs` has passed and the lease is gone: nothing waits for the handler any longer. */
  leaseOver(): void {
    if (this.#settled === undefined && this.#transaction?.isCompleting !== true) this.end()
  }
}
