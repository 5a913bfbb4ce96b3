import { keepProcessAlive } from '../calls/awaited.js'
import type { StoreCall } from '../calls/store-call.js'
import type { EngineEvent, FailureReason } from '../events/events.js'
import { createUnconfirmedRefusal, endAfterLoss, type RunEnd, SEND } from '../events/refusal.js'
import { traceRunEnd } from '../events/trace.js'
import { type MaybePromise, whenever } from '../maybe-promise.js'
import {
  type Acquired,
  type Answer,
  type CommandReply,
  type IdempotencyRecord,
  isSameAnswer,
  type Step,
} from '../record/record.js'
import { Lease, type Leased } from './lease.js'
import { Operation } from './operation.js'
import { type ResumedStep, type RunOfSteps, type StepInHand, type StepInside, warnUnawaitedStep } from './step.js'
import { Steps } from './steps.js'

const CLAIM_REASONS = { none: 'new', failed: 'released', unknown: 'outcome_unknown' } as const

/** How a failure is recorded. */
export interface Failure {
  /** The attempt may have had its effect. */
  readonly uncertain: boolean
  readonly because: FailureReason
}

/**
 * The record of one attempt, as its owner uses it. The end of the attempt is sent to the store, and retried in the
 * background if the store does not confirm it in time; meanwhile the lease is renewed. It is over (`isOver`) when the
 * store has replied, or the run's time has ended.
 */
export abstract class OwnedRecord extends Operation implements Leased, RunOfSteps {
  /** Set when it is claimed. */
  lease!: Lease
  /** The outcome of an earlier attempt is unknown: `uncertain` also says that a step of this one began. */
  protected isEarlierUnknown = false
  /** Made with its first step: an attempt without steps pays nothing for them. */
  protected steps: Steps | undefined = undefined
  #whenEnded: (() => void)[] | undefined = undefined

  /** The run begins. `sentAt`: when its claim was sent. `attempt` 0: its claim was not confirmed. */
  protected own(attempt: number, uncertain: boolean, sentAt: number): void {
    this.attempt = attempt
    this.uncertain = uncertain
    this.isEarlierUnknown = uncertain
    this.become('running')
    this.lease = new Lease(this, this.core, sentAt, this.isProtected)
    this.core.activity.start()
    if (this.isProtected) this.holdKey()
  }

  /** From now on duplicates wait for this run. */
  protected holdKey(): void {
    this.core.duplicates?.enter(this.recordKey, this)
  }

  protected tellClaimed({ attempt, previousOutcome }: Pick<Acquired, 'attempt' | 'previousOutcome'>): void {
    if (!this.core.isHeard()) return
    const { scope, key } = this.identity
    this.emit({ type: 'claimed', scope, key, attempt, previousOutcome, because: CLAIM_REASONS[previousOutcome] })
  }

  get isProtected(): boolean {
    return this.attempt > 0
  }

  /** Nothing more is sent for the record. */
  protected get isOver(): boolean {
    return this.state === 'over' || this.state === 'ended'
  }

  // --- its end

  /** `mustBeConfirmed`: if the store does not confirm the completion in time, a refusal is sent instead of the answer. */
  protected store(answer: Answer, mustBeConfirmed: boolean): MaybePromise<RunEnd> {
    this.answer = answer
    const call = this.core.calls.send('complete', this)
    return whenever(call.whenReplied(), (reply) => {
      if (reply !== null) return this.completed(reply, this.#answerSent(), false)
      this.#completeAgain(call)
      // Without a lease, only a confirmed success is sent: whoever took over may have sent another one.
      return mustBeConfirmed || !this.lease.check() ? createUnconfirmedRefusal(this.options) : SEND
    })
  }

  /** Stores a failure that retries get. */
  protected keep(failure: Answer, mustBeConfirmed: boolean): MaybePromise<RunEnd> {
    return this.store(failure, mustBeConfirmed)
  }

  protected release(failure: Failure): MaybePromise<RunEnd> {
    this.failure = failure
    const call = this.core.calls.send('release', this)
    return whenever(call.whenReplied(), (reply) => {
      if (reply !== null) return this.#failed(reply, failure)
      this.#releaseAgain(call, failure)
      // Without a lease it may be untrue: whoever took over may have succeeded.
      return this.lease.check() ? SEND : createUnconfirmedRefusal(this.options)
    })
  }

  #completeAgain(call: StoreCall<CommandReply>): void {
    this.tell('completion_pending')
    void this.core.calls.sendAgain('complete', this, call, this.lease.until).then((late) => {
      const answer = this.#answerSent()
      if (late === null) this.completionGivenUp()
      else this.completed(late, answer, true)
    })
  }

  /** The answer, which is not sent again. It is dropped, because an application may hold the handler's context for long. */
  #answerSent(): Answer {
    const answer = this.answer as Answer
    this.answer = null
    return answer
  }

  /** `wasPending`: it is confirmed late, after the client has got its response. */
  protected completed(reply: CommandReply, answer: Answer, wasPending: boolean): RunEnd {
    if (reply.ok) {
      if (this.core.isHeard()) this.#tellCompleted(answer)
      this.core.duplicates?.completed(this.recordKey, this, answer)
    } else if (this.isTaken(reply.record)) {
      return this.lost(reply.record)
    } else {
      if (!wasPending) this.tell('completion_pending')
      this.tell('completion_given_up')
    }
    this.end()
    return SEND
  }

  #tellCompleted({ status, body }: Answer): void {
    const { scope, key } = this.identity
    const answerKept = body !== null
    this.emit({ type: 'completed', scope, key, attempt: this.attempt, status, answerKept })
  }

  protected completionGivenUp(): void {
    this.tell('completion_given_up')
    this.end()
  }

  #releaseAgain(call: StoreCall<CommandReply>, failure: Failure): void {
    void this.core.calls.sendAgain('release', this, call, this.lease.until).then((late) => {
      if (late === null) this.end()
      else this.#failed(late, failure)
    })
  }

  #failed(reply: CommandReply, failure: Failure): RunEnd {
    if (!reply.ok && this.isTaken(reply.record)) return this.lost(reply.record)
    if (reply.ok) this.tellFailed(failure)
    this.end()
    return SEND
  }

  protected tellFailed({ uncertain, because }: Failure): void {
    const { scope, key } = this.identity
    this.emit({ type: 'failed', scope, key, attempt: this.attempt, uncertain, because })
  }

  /**
   * Finds out how a transaction that completes the record ended. A release waits for the transaction while it is open,
   * so its reply is proof; a read would show the state before it. `null`: the store gave no reply until `maxRunMs` had
   * passed.
   */
  protected async endByTransaction(failure: Failure): Promise<CommandReply | null> {
    const { calls } = this.core
    this.failure = failure
    const call = calls.send('release', this)
    return (await call.whenReplied()) ?? keepProcessAlive(calls.sendAgain('release', this, call, this.lease.until))
  }

  /** The answer with which the record was completed, if this is it: an operator may have settled the same attempt with another. */
  protected ownAnswerIn(reply: CommandReply, given: Answer): Answer | null {
    if (reply.ok || reply.record?.state !== 'completed' || reply.record.attempt !== this.attempt) return null
    const { answer } = reply.record
    return answer !== null && isSameAnswer(answer, given) ? answer : null
  }

  /** The record belongs to another attempt: the client gets what that record says. */
  protected lost(record: IdempotencyRecord | null): RunEnd {
    this.lease.take()
    this.end()
    return endAfterLoss(record, this.identity, this.options)
  }

  /** What is sent without a lease, according to the reply to a renewal: another attempt may have completed. */
  protected endAsRecorded(reply: CommandReply | null): RunEnd {
    if (reply === null) return createUnconfirmedRefusal(this.options)
    return !reply.ok && this.isTaken(reply.record) ? this.lost(reply.record) : SEND
  }

  /**
   * Whether the record that a command found belongs to another attempt. An unprotected run has no record, so a failed
   * one is nobody's.
   */
  protected isTaken(record: IdempotencyRecord | null): boolean {
    return this.isProtected || record?.state !== 'failed'
  }

  /** Called after the last event of the run; waits for the event of a renewal that is still unanswered. */
  protected end(): void {
    if (this.isOver) return
    this.become('over')
    const { duplicates } = this.core
    traceRunEnd(this.identity, this.attempt, this.token)
    duplicates?.leave(this.recordKey, this)
    const renewal = this.lease.end()
    if (renewal === undefined || renewal.reply !== undefined) this.#ended()
    else this.#endAfter(renewal)
  }

  #endAfter(renewal: StoreCall<CommandReply>): void {
    void whenever(renewal.whenReplied(), () => this.#ended())
  }

  #ended(): void {
    this.become('ended')
    this.core.activity.end()
    if (this.#whenEnded !== undefined) for (const resolve of this.#whenEnded) resolve()
  }

  ended(): Promise<void> {
    if (this.state === 'ended') return Promise.resolve()
    this.#whenEnded ??= []
    const waiting = this.#whenEnded
    return new Promise((resolve) => waiting.push(resolve))
  }

  protected emit(event: EngineEvent): void {
    this.core.emit(event, this.token)
  }

  protected tell(type: 'completion_pending' | 'completion_given_up' | 'transaction_not_committed'): void {
    const { scope, key } = this.identity
    this.emit({ type, scope, key, attempt: this.attempt })
  }

  // --- its lease

  renew(): StoreCall<CommandReply> {
    return this.core.calls.sendInBackground('renew', this)
  }

  restored(): void {
    this.steps?.restored()
  }

  abstract renewalRefused(record: IdempotencyRecord | null): void
  abstract leaseLost(reason: 'lapsed' | 'taken'): void
  abstract timeOver(): void
  abstract leaseOver(): void

  // --- its steps

  abstract readonly signal: AbortSignal
  abstract readonly isEnding: boolean
  abstract readonly hasEnded: boolean
  abstract readonly holdsTransaction: boolean
  abstract mustBeClaimed(call: string): void
  abstract checkEntry(): void

  /** Earlier attempts have recorded these. */
  protected recordedSteps(steps: readonly Step[]): void {
    this.steps = new Steps(this, this.core, steps)
  }

  /** A step of the operation: see `IdempotencyContext`. */
  step(label: string, work: (step: StepInHand) => unknown, options: unknown): Promise<unknown> {
    this.steps ??= new Steps(this, this.core)
    return this.steps.step(label, work, options)
  }

  stepInside(label: string, work: unknown, options: unknown): StepInside | ResumedStep {
    this.steps ??= new Steps(this, this.core)
    return this.steps.inside(label, work, options)
  }

  /** The run has completed: the result of a step that is still running is recorded nowhere. */
  protected warnOfRunningSteps(): void {
    for (const label of this.steps?.runningLabels() ?? []) warnUnawaitedStep(label)
  }

  tellStep(type: 'step_done' | 'step_resumed' | 'step_pending', label: string): void {
    const { scope, key } = this.identity
    this.emit({ type, scope, key, attempt: this.attempt, label })
  }

  setStepUncertain(may: boolean): void {
    this.uncertain = this.isEarlierUnknown || may
  }
}
