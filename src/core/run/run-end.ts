import type { FailureReason } from '../events/events.js'
import type { RunEnd } from '../events/refusal.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { Entry } from '../record/looked.js'
import type { Answer, PreviousOutcome } from '../record/record.js'
import type { IdempotencyContext } from './context.js'
import type { FailureKind } from './run-state.js'

/** One run of an operation, as a binding has it. Only its first end counts: later ones get its result. */
export interface ClaimedRun {
  readonly context: IdempotencyContext
  /** 1, 2, 3 …; 0: its claim is not confirmed. */
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  /** `false`: nothing prevents another attempt from running at the same time. */
  readonly isProtected: boolean
  /** Whether any failure would leave the outcome unknown. */
  readonly isUncertain: boolean
  readonly isInTransaction: boolean
  /** The run if its transaction takes the key; `undefined`: the key was claimed before. */
  readonly unclaimed: UnclaimedKey | undefined
  /** Makes the answer; set by a binding. */
  source: AnswerSource | undefined
  /**
   * Ends the run with an answer; the record is completed first. `mustBeConfirmed`: if the store does not confirm that
   * in time, a refusal is sent instead.
   */
  complete(answer: Answer, mustBeConfirmed?: boolean): MaybePromise<RunEnd>
  /**
   * Ends the run as a failure, with its reason. It is certain only with `'certainly'`, without `mayHaveEffect()`, and
   * if no earlier attempt may have had its effect. `kept`: the failure is what retries get, so that it completes the
   * record, and nothing runs again.
   */
  fail(how: FailureKind, because: FailureReason, kept?: Answer): MaybePromise<RunEnd>
  /** Resolves behind the last event of the run: nothing of it is pending any more. */
  ended(): Promise<void>
}

/** How a run is to end; `answer: null`: as a failure. */
export type OfferedEnd =
  | { readonly answer: Answer }
  | {
      readonly answer: null
      readonly how: FailureKind
      readonly because: FailureReason
      /** What retries get: the transaction is rolled back all the same, and the record is completed after it. */
      readonly kept?: Answer | undefined
    }

/** The open transaction of a run: while it is open, ends of the run are offered to it. */
export interface OpenTransaction {
  /** The record is locked, which replaces the lease. */
  readonly isCompleting: boolean
  /** It was rolled back, though its work still runs: nothing of it holds the record. */
  readonly isLeftBehind: boolean
  /** Resolves with what to send, after the transaction has ended; never resolves if the end was discarded. */
  offer(end: OfferedEnd): Promise<RunEnd>
  /**
   * Called by a transaction that is to follow. Resolves when the work that this one left behind has settled; `undefined`: it
   * has left nothing behind, so it must be awaited.
   */
  follow(): Promise<void> | undefined
}

/** A key that was looked at, and that a transaction takes. */
export type UnclaimedKey = {
  readonly entry: Entry
  /** A transaction has taken the key. */
  enter(): void
  /** Another attempt has it: waits if duplicates wait (`inFlightWaitMs`). Resolves with whether the key is free again. */
  waitUntilFree(): Promise<boolean>
  /** It stays with the other attempt: whatever the handler answers, its client gets what the record says. */
  giveUp(): void
}

/** What a store needs to complete a record that no claim has made. */
export interface Finish extends Completion, Pick<Entry, 'seen' | 'attempt'> {
  readonly fingerprint: string
}

/** What a store needs to complete a record inside a transaction. */
export interface Completion {
  readonly token: string
  /** How long the record is kept, in milliseconds. */
  readonly retentionMs: number
  readonly answer: Answer
}

/** Makes the answer of a run, for transactions: implemented by a binding. */
export interface AnswerSource {
  /**
   * A transaction opens: nothing of the response is sent until `onTransactionEnd`.
   *
   * @throws IdempotencyError `transaction_late`: the response has begun.
   */
  onTransactionBegin(): void
  /** Discards the response since `onTransactionBegin` and restores the state at that time. */
  onRollback(): void
  /**
   * The work of the transaction resolved with `value`. If that is the answer, ends the run with it.
   *
   * @throws IdempotencyError `transaction_streamed`: the answer is not whole.
   */
  onWorkResolved(value: unknown): MaybePromise<void>
  /**
   * The transaction was rolled back, but its work still runs. Returns whether the work cannot give an answer any more: what is
   * answered from now on is the handler's own.
   */
  onWorkLeftBehind(): boolean
  /** The transaction ended; if it was not committed, `onRollback` was called before. */
  onTransactionEnd(): void
  /** The handler waits for nothing any more: if its answer is discarded, it gives no other. */
  readonly hasStopped: boolean
  /** `maxRunMs` has passed: whoever waits for an answer that was discarded, and that no other has followed, is told to retry. */
  onTimeOver(): void
  /**
   * The stored form of an answer that was given by hand.
   *
   * @throws IdempotencyError `arguments_invalid`.
   */
  toStoredAnswer(given: unknown): Answer
}

/** The ends of the run that are offered to an open transaction, until its outcome is known. */
export class OfferedEnds {
  #first: Offered | undefined
  /** The failure that was offered behind a success: it counts if the success is discarded. */
  #failure: Offered | undefined

  get end(): OfferedEnd | undefined {
    return this.#first?.end
  }

  get areFailed(): boolean {
    return this.#first?.end.answer === null
  }

  /** Resolves with what to send; never if the end was discarded. */
  add(end: OfferedEnd): Promise<RunEnd> {
    if (this.#first === undefined) this.#first = new Offered(end)
    else if (end.answer === null && !this.areFailed) {
      this.#failure ??= new Offered(end)
      return this.#failure.told
    }
    return this.#first.told
  }

  /** The transaction was rolled back, and a success with it. */
  discard(): void {
    this.#first = this.#failure
    this.#failure = undefined
  }

  tell(settled: RunEnd): void {
    this.#first?.tell(settled)
    this.#failure?.tell(settled)
  }
}

class Offered {
  readonly end: OfferedEnd
  readonly told: Promise<RunEnd>
  tell!: (settled: RunEnd) => void

  constructor(end: OfferedEnd) {
    this.end = end
    this.told = new Promise((resolve) => {
      this.tell = resolve
    })
  }
}
