import { RUN } from './context.js'
import { isKeptIn } from './kept-in.js'
import { type MaybePromise, whenever } from './maybe-promise.js'
import type { Settled } from './outcome.js'
import type { Answer } from './record.js'
import type { Run } from './run.js'
import type { Completion, OfferedEnd, OpenTransaction } from './run-end.js'
import type { Store } from './store.js'
import { contextForeign, contextMissing, transactionUnanswered } from './transaction-errors.js'

/**
 * One transaction of a run, from before its BEGIN until it is known what became of it. While it is open the run does not end:
 * whoever ends it is told what came of it afterwards. Whoever opens it (see `transact.ts`) calls these in their order.
 */
export class RunTransaction implements OpenTransaction {
  readonly recordKey: string
  readonly token: string
  /** For so long the session may do nothing before the database ends it, in milliseconds. */
  readonly idleMs: number
  /** The record is completed in the transaction: until that is over, its lock stands for the lease. */
  isCompleting = false
  readonly #run: Run
  /** The work was called: a second call means that the client tries again. */
  #hasBegun = false
  /** Its answer depends on it: a step's does not. */
  readonly #isAnswered: boolean
  /** With what the run was ended meanwhile; the first end counts. */
  #offered: Offered | undefined

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

  /** An end that somebody gives to the run meanwhile. */
  offer(end: OfferedEnd): Promise<Settled> {
    this.#offered ??= new Offered(end)
    return this.#offered.told
  }

  /**
   * Before the transaction has a snapshot that a renewal would make stale: confirms one, and sends no other.
   *
   * @throws IdempotencyError `lease_lost`
   */
  async renew(): Promise<void> {
    await this.#run.renewAndPause()
  }

  /** The database lets renewals through until the record is completed. */
  admitRenewals(): void {
    this.#run.resumeRenewals()
  }

  /** Behind BEGIN, each time that the client calls the work. */
  begun(): void {
    if (this.#hasBegun) this.#discard()
    this.#hasBegun = true
  }

  /**
   * The work has resolved: with what the record is to be completed, as the last statement; `null`: the answer is a failure,
   * so the transaction is to be rolled back.
   *
   * @throws IdempotencyError `transaction_unanswered`, `transaction_streamed`: it is to be rolled back.
   */
  resolved(value: unknown): MaybePromise<Completion | null> {
    return whenever(this.#run.source?.resolved(value), () => {
      if (this.#offered === undefined) throw transactionUnanswered()
      const { answer } = this.#offered.end
      return answer === null ? null : this.#run.completionOf(answer)
    })
  }

  /** Before a statement that locks the record: no renewal is on its way any more, and the lock stands for the lease. */
  async locking(): Promise<void> {
    await this.#run.lockLease()
    this.isCompleting = true
  }

  /** The COMMIT was confirmed: the record is completed, and the answer leaves. */
  committed(): void {
    const settled = this.#run.committed(this.#offered?.end.answer as Answer)
    this.#close()?.tell(settled)
  }

  /** It was rolled back, or never begun: what was answered does not count, and the run goes on, unless its response is gone. */
  rolledBack(): MaybePromise<void> {
    const end = this.#offered?.end
    if (end?.answer === null && end.because === 'no_answer') return this.failed()
    this.#discard()
    this.#close()
  }

  /** It was rolled back since its answer is a failure: the run ends with that. */
  failed(): Promise<void> {
    return this.#endRun()
  }

  /**
   * Nobody knows whether it was committed: the store is asked until it proves that, or `maxRunMs` is over. `false`: it was
   * rolled back, and the next attempt may run; or it is still not known, and the client is told to come back.
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

  /** A step is over; `mayBeCommitted`: what it wrote may be there, so a failure from now on leaves the outcome unknown. */
  async stepOver(mayBeCommitted: boolean): Promise<void> {
    if (mayBeCommitted) this.#run.mayHaveEffect()
    await this.#endRun()
  }

  /** Ends the run as was offered meanwhile; without an offer it goes on. */
  async #endRun(): Promise<void> {
    const run = this.#run
    const offered = this.#close()
    if (offered === undefined) return
    const { end, tell } = offered
    tell(await (end.answer === null ? run.fail(end.how, end.because) : run.complete(end.answer)))
  }

  /** What was answered does not count: whoever ended the run is told of the answer that does, or nothing. */
  #discard(): void {
    this.isCompleting = false
    this.#offered = undefined
    this.#run.source?.reset()
  }

  /** From here on ends go to the run, whose lease is renewed again. Returns what was offered. */
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

/** An end of the run, and the promise of whoever offered it. */
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
