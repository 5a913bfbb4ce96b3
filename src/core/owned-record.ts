import type { CoreParts } from './core-parts.js'
import type { EngineEvent, FailureReason } from './events.js'
import type { Identity } from './identity.js'
import { Lease, type Leased } from './lease.js'
import { type MaybePromise, whenever } from './maybe-promise.js'
import { SEND, type Settled } from './outcome.js'
import type { Acquired, Answer, Claim, CommandReply, IdempotencyRecord, Ownership } from './record.js'
import type { StoreCall } from './store-calls.js'
import { traceRunEnd } from './trace.js'
import { unconfirmed, verdictAfterLoss } from './verdict.js'

/** The initial state of a run. */
export interface Start {
  readonly identity: Identity
  readonly recordKey: string
  readonly claim: Claim
  readonly acquired: Acquired
  /** When the claim was sent: the lease starts then. */
  readonly sentAt: number
  /** `false`: the store did not confirm the claim, and the options say to run anyway. */
  readonly isProtected: boolean
}

type CompleteTerms = Ownership & { readonly answer: Answer }

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
export abstract class OwnedRecord implements Leased {
  readonly identity: Identity
  readonly recordKey: string
  readonly attempt: number
  /** `false`: nothing prevents another attempt from running at the same time. */
  readonly isProtected: boolean
  protected readonly core: CoreParts
  protected readonly ownership: Ownership
  protected readonly lease: Lease
  /** Nothing more is sent for the record. */
  protected isOver = false
  /** All of that has happened; whoever waits for it is told. */
  #hasEnded = false
  #whenEnded: (() => void)[] | undefined

  constructor({ identity, recordKey, claim, acquired, sentAt, isProtected }: Start, core: CoreParts) {
    const { attempt, previousOutcome } = acquired
    this.identity = identity
    this.recordKey = recordKey
    this.attempt = attempt
    this.isProtected = isProtected
    this.core = core
    const { token, scope, fingerprint } = claim
    const uncertain = isProtected && previousOutcome === 'unknown'
    this.ownership = { token, scope, fingerprint, attempt, uncertain, retentionMs: core.options.retentionMs }
    this.lease = new Lease(this, core, sentAt, isProtected)
    core.activity.start()
    if (isProtected) core.duplicates?.enter(recordKey, this.ownership)
  }

  // --- its end

  /**
   * `mustBeConfirmed`: if the store does not confirm the completion in time, a refusal is sent instead of the answer.
   */
  protected store(answer: Answer, mustBeConfirmed: boolean): MaybePromise<Settled> {
    const { calls } = this.core
    const terms = { ...this.ownership, answer }
    const call = calls.send('complete', this, terms)
    const { reply } = call
    return reply instanceof Promise
      ? this.#storedLater(reply, terms, call, mustBeConfirmed)
      : this.#stored(reply, terms, call, mustBeConfirmed)
  }

  async #storedLater(
    reply: Promise<CommandReply | null>,
    terms: CompleteTerms,
    call: StoreCall<CommandReply>,
    mustBeConfirmed: boolean,
  ): Promise<Settled> {
    return this.#stored(await reply, terms, call, mustBeConfirmed)
  }

  #stored(
    reply: CommandReply | null,
    terms: CompleteTerms,
    call: StoreCall<CommandReply>,
    mustBeConfirmed: boolean,
  ): Settled {
    if (reply !== null) return this.completed(reply, terms.answer, false)
    this.#completeAgain(terms, call)
    // Without a lease, only a confirmed success is sent: whoever took over may have sent another one.
    return mustBeConfirmed || !this.lease.check() ? unconfirmed(this.core.options) : SEND
  }

  #completeAgain(terms: CompleteTerms, call: StoreCall<CommandReply>): void {
    this.tell('completion_pending')
    void this.core.calls.sendAgain('complete', this, terms, call, this.lease.until).then((late) => {
      if (late === null) this.completionGivenUp()
      else this.completed(late, terms.answer, true)
    })
  }

  /** `wasPending`: it is confirmed late, after the client has got its response. */
  protected completed(reply: CommandReply, answer: Answer, wasPending: boolean): Settled {
    if (reply.ok) {
      const { scope, key } = this.identity
      const { status, body } = answer
      const answerKept = body !== null
      this.emit({ type: 'completed', scope, key, attempt: this.attempt, status, answerKept })
      this.core.duplicates?.completed(this.recordKey, this.ownership, answer)
    } else if (this.isTaken(reply.record)) {
      return this.lost(reply.record)
    } else {
      if (!wasPending) this.tell('completion_pending')
      this.tell('completion_given_up')
    }
    this.end()
    return SEND
  }

  protected completionGivenUp(): void {
    this.tell('completion_given_up')
    this.end()
  }

  protected release(failure: Failure): MaybePromise<Settled> {
    const { calls } = this.core
    const terms = this.#releaseTerms(failure)
    const call = calls.send('release', this, terms)
    return whenever(call.reply, (reply): Settled => {
      if (reply !== null) return this.#released(reply, failure)
      void calls.sendAgain('release', this, terms, call, this.lease.until).then((late) => {
        if (late === null) this.end()
        else this.#released(late, failure)
      })
      return SEND
    })
  }

  #releaseTerms({ uncertain }: Failure) {
    const { maxRunMs, leaseMs, unknownRetentionMs } = this.core.options
    return { ...this.ownership, retentionMs: unknownRetentionMs, uncertain, failedMs: maxRunMs + leaseMs }
  }

  #released(reply: CommandReply, { uncertain, because }: Failure): Settled {
    if (!reply.ok && this.isTaken(reply.record)) return this.lost(reply.record)
    const { scope, key } = this.identity
    if (reply.ok) this.emit({ type: 'failed', scope, key, attempt: this.attempt, uncertain, because })
    this.end()
    return SEND
  }

  /**
   * Finds out how a transaction that completes the record ended. A release waits for the transaction while it is open,
   * so its reply is proof; a read would show the state before it. `null`: the store gave no reply until `maxRunMs` had
   * passed.
   */
  protected async endByTransaction(failure: Failure): Promise<CommandReply | null> {
    const { calls } = this.core
    const terms = this.#releaseTerms(failure)
    const call = calls.send('release', this, terms)
    return (await call.reply) ?? calls.sendAgain('release', this, terms, call, this.lease.until)
  }

  /** The answer with which the record was completed, if this attempt completed it. */
  protected ownAnswerIn(reply: CommandReply): Answer | null {
    if (reply.ok || reply.record?.state !== 'completed' || reply.record.attempt !== this.attempt) return null
    return reply.record.answer
  }

  /** The record belongs to another attempt: the client gets what that record says. */
  protected lost(record: IdempotencyRecord | null): Settled {
    this.lease.take()
    this.end()
    return verdictAfterLoss(record, this.identity, this.core.options)
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
    this.isOver = true
    const { duplicates } = this.core
    traceRunEnd(this.identity, this.attempt, this.ownership.token)
    duplicates?.leave(this.recordKey, this.ownership)
    const renewal = this.lease.end()
    if (renewal === undefined) this.#ended()
    else void whenever(renewal.reply, () => this.#ended())
  }

  #ended(): void {
    this.#hasEnded = true
    this.core.activity.end()
    for (const resolve of this.#whenEnded ?? []) resolve()
  }

  /** Resolves behind the last event of the run: nothing of it is pending any more. */
  ended(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve()
    this.#whenEnded ??= []
    const waiting = this.#whenEnded
    return new Promise((resolve) => waiting.push(resolve))
  }

  protected emit(event: EngineEvent): void {
    this.core.emit(event, this.ownership.token)
  }

  protected tell(type: 'completion_pending' | 'completion_given_up' | 'transaction_not_committed'): void {
    const { scope, key } = this.identity
    this.emit({ type, scope, key, attempt: this.attempt })
  }

  // --- its lease

  renew(): StoreCall<CommandReply> {
    const { leaseMs, unknownRetentionMs } = this.core.options
    // While it is in flight its outcome would be unknown if its owner died, so it is kept as long as those are.
    return this.core.calls.send('renew', this, { ...this.ownership, retentionMs: unknownRetentionMs, leaseMs })
  }

  abstract renewalRefused(record: IdempotencyRecord | null): void
  abstract leaseLost(reason: 'lapsed' | 'taken'): void
  abstract leaseOver(): void
}
