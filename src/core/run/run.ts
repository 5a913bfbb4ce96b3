import { monotonicNow } from '../calls/clock.js'
import { toKeptAnswer } from '../calls/sending-store.js'
import type { IdempotencyError } from '../errors.js'
import type { FailureReason } from '../events/events.js'
import { createUnconfirmedRefusal, type Refused, type RunEnd, SEND } from '../events/refusal.js'
import { type MaybePromise, whenever } from '../maybe-promise.js'
import { misuseError, transactionLateError } from '../misuse.js'
import type { Acquired, Answer, CommandReply, IdempotencyRecord, PreviousOutcome } from '../record/record.js'
import { HandlerContext } from './context.js'
import { type Failure, OwnedRecord } from './owned-record.js'
import type { AnswerSource, ClaimedRun, Completion, FailureKind, LookedKey, OpenTransaction } from './run-end.js'

/** One run of an operation, from its claim to its end. */
export class Run extends OwnedRecord implements ClaimedRun {
  previousOutcome: PreviousOutcome = 'none'
  /** The context that the handler receives; made after its claim. */
  context!: HandlerContext
  /** The result of the first end, once it is known. */
  #settled: RunEnd | undefined = undefined
  /** For whoever ends it again before that, and what resolves it. */
  #later: Promise<RunEnd> | undefined = undefined
  #tellLater: ((settled: RunEnd) => void) | undefined = undefined
  /** The handler has called `mayHaveEffect()`. */
  #mayHaveHadEffect = false
  /** It has failed while a step was running: releases it, when that has settled or `maxRunMs` has passed. */
  #releaseAfterSteps: (() => void) | undefined = undefined
  #abort: AbortController | undefined = undefined
  /** Why the handler should stop; the first reason counts. */
  #stopReason: IdempotencyError | undefined = undefined
  source: AnswerSource | undefined = undefined
  /** The open transaction: ends are offered to it. */
  #transaction: OpenTransaction | undefined = undefined
  #hasCommitted = false
  /** With this, the record was completed inside the application's transaction: whether that was committed is checked at the end. */
  #answerByHand: Answer | undefined = undefined
  /** It failed in place of an answer that may be untrue: no answer of the handler's is sent. */
  #isWithdrawn = false
  /** Its first end was given. */
  #isEnding = false

  /** Its claim was sent at this time, and acquired the key. */
  begin({ attempt, previousOutcome, steps }: Acquired, sentAt: number): void {
    this.tellClaimed({ attempt, previousOutcome })
    this.previousOutcome = previousOutcome
    if (steps !== undefined) this.recordedSteps(steps)
    this.#begin(attempt, previousOutcome === 'unknown', sentAt)
  }

  /** Whether it was claimed is unknown, and it runs anyway. */
  beginUnprotected(sentAt: number): void {
    this.previousOutcome = 'unknown'
    this.#begin(0, false, sentAt)
  }

  #begin(attempt: number, uncertain: boolean, sentAt: number): void {
    this.own(attempt, uncertain, sentAt)
    this.context = new HandlerContext(this)
  }

  // --- for the handler

  /** Any failure from now on leaves the outcome unknown. */
  mayHaveEffect(): void {
    this.#mayHaveHadEffect = true
  }

  get isUncertain(): boolean {
    return this.uncertain || this.#mayHaveHadEffect
  }

  get isEnding(): boolean {
    return this.#isEnding
  }

  get hasEnded(): boolean {
    return this.#isEnding && this.isOver
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

  complete(answer: Answer, mustBeConfirmed = this.withholds): MaybePromise<RunEnd> {
    if (this.#transaction !== undefined) return this.#transaction.offer({ answer })
    if (!this.#begins()) return this.#whenSettled()
    this.warnOfRunningSteps()
    const byHand = this.#answerByHand
    return this.#settles(byHand === undefined ? this.store(answer, mustBeConfirmed) : this.#verify(byHand))
  }

  fail(how: FailureKind, because: FailureReason, kept?: Answer): MaybePromise<RunEnd> {
    if (this.#transaction !== undefined) return this.#transaction.offer({ answer: null, how, because, kept })
    if (!this.#begins()) return this.#whenSettled()
    if (this.#answerByHand !== undefined) return this.#settles(this.#verify(this.#answerByHand))
    this.#stop(misuseError('run_failed')) // First, because a time limit may have responded while the handler still runs.
    return this.#settles(kept === undefined ? this.#fail(how, because) : this.keep(kept, this.withholds))
  }

  /** Where no claim protects the run, a client that is told to retry would run it again, each time. */
  protected get withholds(): boolean {
    return this.isProtected && this.options.unconfirmedSuccess === 'withhold'
  }

  /** Whether this is the first end. */
  #begins(): boolean {
    if (this.#isEnding) return false
    this.#isEnding = true
    if (this.state === 'running') this.become('ending')
    return true
  }

  /** The result of the first end. */
  #whenSettled(): MaybePromise<RunEnd> {
    if (this.#settled !== undefined) return this.#settled
    this.#later ??= new Promise((resolve) => {
      this.#tellLater = resolve
    })
    return this.#later
  }

  #settles(end: MaybePromise<RunEnd>): MaybePromise<RunEnd> {
    return whenever(end, (found) => this.settle(found))
  }

  protected settle(found: RunEnd): RunEnd {
    if (this.#settled !== undefined) return this.#settled
    this.#isEnding = true
    this.#settled = this.#isWithdrawn && found.action === 'send' ? createUnconfirmedRefusal(this.options) : found
    this.#tellLater?.(this.#settled)
    return this.#settled
  }

  /** Ends the run as a failure in place of its answer, which may be untrue: whoever answers is told to retry. */
  withdraw(): MaybePromise<RunEnd> {
    this.#isWithdrawn ||= !this.#isEnding
    return this.fail('perhaps', 'no_answer')
  }

  #fail(how: FailureKind, because: FailureReason): MaybePromise<RunEnd> {
    if (this.steps?.areSettled !== false || monotonicNow() >= this.lease.until)
      return this.release(this.#judged(how, because))
    // The next attempt must not call a step that is still at the bank.
    this.#releaseAfterSteps = () => {
      this.#releaseAfterSteps = undefined
      if (!this.isOver) void this.#settles(this.release(this.#judged(how, because)))
    }
    this.steps.whenSettled(() => this.#releaseAfterSteps?.())
    if (this.lease.check()) return SEND
    void this.lease.renewNow().then((reply) => this.#renewedAtEnd(reply))
    return this.#whenSettled()
  }

  /** A renewal shows the record, and releases nothing. Once the steps have settled, the reply to the release decides. */
  #renewedAtEnd(reply: CommandReply | null): void {
    if (this.#releaseAfterSteps !== undefined) this.settle(this.endAsRecorded(reply))
  }

  /** An uncertain attempt stays uncertain, whatever its failure. */
  #judged(how: FailureKind, because: FailureReason): Failure {
    if (this.isEarlierUnknown) return { uncertain: true, because: 'earlier_attempt' }
    if (this.#mayHaveHadEffect || this.uncertain) return { uncertain: true, because: 'may_have_effect' }
    if (how === 'certainly') return { uncertain: false, because }
    return this.options.effects === 'declared'
      ? { uncertain: false, because: 'declared' }
      : { uncertain: true, because }
  }

  // --- in a transaction

  get remainingMs(): number {
    return Math.max(0, this.lease.until - monotonicNow())
  }

  /** An open transaction will end with a failure: its work should stop. */
  stopWork(): void {
    this.#stop(misuseError('run_failed'))
  }

  get isInTransaction(): boolean {
    return this.#transaction !== undefined
  }

  get holdsTransaction(): boolean {
    return this.#transaction?.isLeftBehind === false
  }

  get looked(): LookedKey | undefined {
    return undefined
  }

  /** @throws IdempotencyError `effects_in_transaction`: `call` is for runs that were claimed. */
  mustBeClaimed(_call: string): void {}

  /** @throws IdempotencyError `transaction_nested`, `transaction_committed`, `transaction_late`: nothing was sent. */
  checkEntry(): void {
    if (this.#answerByHand !== undefined) throw misuseError('transaction_committed')
    this.checkByHand()
  }

  /** For a completion by hand, which may be repeated: the application may have rolled its first transaction back. */
  checkByHand(): void {
    if (this.#transaction !== undefined) throw misuseError('transaction_nested')
    if (this.#hasCommitted) throw misuseError('transaction_committed')
    if (this.#isEnding) throw transactionLateError()
  }

  /** Resolves when the work that an earlier transaction left behind has settled; `undefined`: there is none. */
  follow(): Promise<void> | undefined {
    return this.#transaction?.follow()
  }

  enter(transaction: OpenTransaction): void {
    this.#transaction = transaction
  }

  left(): void {
    this.#transaction = undefined
  }

  completionOf(answer: Answer): Completion {
    const { token, fingerprint, recordKey } = this
    const { store, retentionMs } = this.options
    return { token, retentionMs, answer: toKeptAnswer(store, recordKey, fingerprint, answer) }
  }

  /** @throws IdempotencyError `arguments_invalid`: the run cannot have this answer. */
  answerByHand(given: unknown): Answer {
    return this.source === undefined ? (given as Answer) : this.source.answerOf(given)
  }

  committed(answer: Answer): RunEnd {
    this.#hasCommitted = true
    return this.settle(this.completed({ ok: true }, answer, false))
  }

  /** Finds out how an unconfirmed COMMIT ended. A refusal means that it is unknown, and the run is over. */
  async outcomeOfCommit(answer: Answer): Promise<'committed' | 'rolled back' | Refused> {
    this.tell('completion_pending')
    const reply = await this.endByTransaction(this.#judged('perhaps', 'no_answer'))
    if (reply === null) {
      this.completionGivenUp()
      const refused = createUnconfirmedRefusal(this.options)
      this.settle(refused)
      return refused
    }
    if (this.ownAnswerIn(reply, answer) !== null) return 'committed'
    // Its record has failed or belongs to another attempt; the handler learns that when it responds.
    this.lease.giveUp()
    this.#stop(misuseError('run_failed'))
    return 'rolled back'
  }

  /** The application's transaction was refused. */
  notCompletedByHand(): void {
    if (this.#answerByHand === undefined) this.lease.resume() // Otherwise an earlier one may be open or committed.
  }

  completedByHand(answer: Answer): void {
    this.lease.lock()
    this.#answerByHand = answer
  }

  /** Its result is what the record says, whatever the handler responded. */
  async #verify(given: Answer): Promise<RunEnd> {
    const reply = await this.endByTransaction(this.#judged('perhaps', 'no_answer'))
    const answer = reply && this.ownAnswerIn(reply, given)
    if (answer !== null) {
      this.completed({ ok: true }, answer, false)
      return answer.body === null ? SEND : { action: 'replay', answer, isOwn: true }
    }
    this.tell(reply === null ? 'completion_given_up' : 'transaction_not_committed')
    this.end()
    return createUnconfirmedRefusal(this.options)
  }

  renewalRefused(record: IdempotencyRecord | null): void {
    // After the end was sent, a stale renewal may mean that it arrived: its own reply decides.
    if (!this.#isEnding && this.isTaken(record)) this.lease.take()
  }

  leaseLost(reason: 'lapsed' | 'taken'): void {
    const { scope, key } = this.identity
    this.emit({ type: 'lease_lost', scope, key, attempt: this.attempt, reason })
    this.#stop(misuseError('lease_lost'))
    this.core.duplicates?.leave(this.recordKey, this)
  }

  timeOver(): void {
    this.#releaseAfterSteps?.()
  }

  /** `maxRunMs` has passed and the lease is gone: nothing waits for the handler any longer. */
  leaseOver(): void {
    if (this.#isEnding || this.#transaction?.isCompleting === true) return
    this.#stop(misuseError('run_failed')) // Where there was no lease that could be lost.
    this.end()
    this.source?.timeOver()
  }
}
