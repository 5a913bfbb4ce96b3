import { RUN } from './context.js'
import { isKeptIn } from './kept-in.js'
import { type MaybePromise, whenever } from './maybe-promise.js'
import type { Settled } from './outcome.js'
import type { Answer } from './record.js'
import type { Run } from './run.js'
import type { Completion, OfferedEnd, OpenTransaction } from './run-end.js'
import type { Store } from './store.js'
import { contextForeign, contextMissing, transactionUnanswered, transactionWaiting } from './transaction-errors.js'

/**
 * One transaction of a run, from before BEGIN until its outcome is known. While it is open the run does not end: ends
 * are offered to the transaction and settled afterwards. `transact.ts` calls these methods in order.
 */
export class RunTransaction implements OpenTransaction {
  readonly recordKey: string
  readonly token: string
  /** How long the session may be inactive before the database ends it, in milliseconds. */
  readonly idleMs: number
  /** The record is completed in the transaction: until the transaction ends, the record's lock replaces the lease. */
  isCompleting = false
  readonly #run: Run
  /** The work was called: a second call means that the client retries it. */
  #hasBegun = false
  /** Whether the transaction contains the answer: that of a step does not. */
  readonly #isAnswered: boolean
  /** The first end that was offered meanwhile. */
  #offered: Offered | undefined
  /** Called when an end is offered. */
  #onOffered: (() => void) | undefined

  /** @throws IdempotencyError for misuse: nothing was sent. */
  constructor(context: unknown, store: Store, kind: 'transaction' | 'step') {
    const run = usableRun(context, store)
    run.mayEnter()
    this.#isAnswered = kind === 'transaction'
    if (this.#isAnswered) run.source?.entered()
    this.recordKey = run.recordKey
    this.token = run.token
    this.idleMs = run.leaseMs
    this.#run = run
    run.enter(this)
  }

  /**
   * Offers an end of the run while the transaction is open: the first one counts. A failure is final, since it may be the error page
   * for a handler that has stopped waiting: nobody would make another answer.
   */
  offer(end: OfferedEnd): Promise<Settled> {
    this.#offered ??= new Offered(end)
    if (this.#hasFailed) this.#run.willFail()
    this.#onOffered?.()
    return this.#offered.told
  }

  get #hasFailed(): boolean {
    return this.#offered?.end.answer === null
  }

  /**
   * Called before BEGIN if a renewal would invalidate the transaction's snapshot: confirms one renewal, and stops
   * further ones.
   *
   * @throws IdempotencyError `lease_lost`
   */
  async renew(): Promise<void> {
    await this.#run.renewAndPause()
  }

  /** The database allows renewals until the record is completed. */
  admitRenewals(): void {
    this.#run.resumeRenewals()
  }

  /** Called after BEGIN, each time that the client calls the work. */
  begun(): void {
    if (this.#hasBegun && !this.#hasFailed) this.#discard()
    this.#hasBegun = true
  }

  /**
   * Resolves with the result of the work. Without the session nothing can be committed: work that has answered, and does not
   * resolve at once, may wait for its own response.
   *
   * @throws IdempotencyError `transaction_waiting`: it must be rolled back.
   */
  async resultOf<Value>(work: Value | Promise<Value>, sessionEnd: Promise<void> | undefined): Promise<Value> {
    return sessionEnd === undefined ? work : Promise.race([work, sessionEnd.then(() => this.#stuck())])
  }

  async #stuck(): Promise<never> {
    if (this.#offered === undefined) await new Promise<void>((resolve) => (this.#onOffered = resolve))
    await new Promise((resolve) => setTimeout(resolve, 0))
    throw transactionWaiting()
  }

  /**
   * The work has resolved. Returns what to complete the record with, as the last statement; `null`: the answer is a
   * failure, so the transaction must be rolled back.
   *
   * @throws IdempotencyError `transaction_unanswered`, `transaction_streamed`: it must be rolled back.
   */
  resolved(value: unknown): MaybePromise<Completion | null> {
    return whenever(this.#run.source?.resolved(value), () => {
      if (this.#offered === undefined) throw transactionUnanswered()
      const { answer } = this.#offered.end
      return answer === null ? null : this.#run.completionOf(answer)
    })
  }

  /** Called before a statement that locks the record: waits for renewals to end; then the lock replaces the lease. */
  async locking(): Promise<void> {
    await this.#run.lockLease()
    this.isCompleting = true
  }

  /** The COMMIT was confirmed: the record is completed, and the answer is sent. */
  committed(): void {
    const settled = this.#run.committed(this.#offered?.end.answer as Answer)
    this.#close()?.tell(settled)
  }

  /** It was rolled back, or never begun: the answer is discarded, and the run continues, unless that is a failure. */
  rolledBack(): MaybePromise<void> {
    if (this.#hasFailed) return this.failed()
    this.#discard()
    this.#close()
  }

  /** It was rolled back because its answer is a failure: the run ends with that. */
  failed(): Promise<void> {
    return this.#endRun()
  }

  /**
   * It is unknown whether it was committed: asks the store until that is proved, or `maxRunMs` has passed. `false`: it
   * was rolled back, and the next attempt may run; or it is still unknown, and the client is told to retry.
   */
  async resolve(): Promise<boolean> {
    const outcome = await this.#run.outcomeOfCommit()
    if (outcome === 'committed') {
      this.committed()
      return true
    }
    if (outcome === 'rolled back') this.#discard()
    const offered = this.#close()
    if (outcome !== 'rolled back') offered?.tell(outcome)
    return false
  }

  /**
   * A step has ended. Unless it was rolled back its writes may exist, so any failure from now on leaves the outcome unknown. An
   * answer that was given meanwhile is sent only if they do exist: it may speak of them.
   */
  async stepOver(outcome: StepOutcome): Promise<void> {
    const run = this.#run
    if (outcome !== 'rolled back') run.mayHaveEffect()
    const end = this.#offered?.end
    if (end === undefined || end.answer === null || outcome === 'committed') return this.#endRun()
    this.#close()?.tell(await run.withdraw())
  }

  /** Ends the run with the offered end; without one the run continues. */
  async #endRun(): Promise<void> {
    const run = this.#run
    const offered = this.#close()
    if (offered === undefined) return
    const { end, tell } = offered
    tell(await (end.answer === null ? run.fail(end.how, end.because) : run.complete(end.answer)))
  }

  /** Discards the answer: whoever ended the run gets the result of the final answer, or none. */
  #discard(): void {
    this.isCompleting = false
    this.#offered = undefined
    this.#run.source?.reset()
  }

  /** From now on ends go to the run, and its lease is renewed again. Returns the offered end. */
  #close(): Offered | undefined {
    const offered = this.#offered
    this.#offered = undefined
    this.isCompleting = false
    this.#run.left()
    if (this.#isAnswered) this.#run.source?.left()
    this.#run.resumeRenewals()
    return offered
  }
}

/** `unknown`: the reply to its COMMIT was lost. */
export type StepOutcome = 'committed' | 'unknown' | 'rolled back'

/** An end of the run, and the promise of its result. */
class Offered {
  readonly end: OfferedEnd
  readonly told: Promise<Settled>
  tell!: (settled: Settled) => void

  constructor(end: OfferedEnd) {
    this.end = end
    this.told = new Promise((resolve) => {
      this.tell = resolve
    })
  }
}

/** @throws IdempotencyError `context_missing`, `context_foreign` */
export function usableRun(context: unknown, store: Store): Run {
  const run = (context as { readonly [RUN]?: Run } | null | undefined)?.[RUN]
  if (run === undefined) throw contextMissing(context)
  if (!isKeptIn(run.keptIn, store)) throw contextForeign()
  return run
}
