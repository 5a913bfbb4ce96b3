import type { FailureReason } from '../events/events.js'
import type { RunEnd } from '../events/refusal.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { Entry } from '../record/looked.js'
import type { Answer } from '../record/record.js'

/** Whether a failed run certainly had no effect. */
export type FailureKind = 'certainly' | 'perhaps'

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
  /** Resolves with what to send, after the transaction has ended; never resolves if the end was discarded. */
  offer(end: OfferedEnd): Promise<RunEnd>
  /**
   * Called by a transaction that is to follow. Resolves when the work that this one left behind has settled; `undefined`: it
   * has left nothing behind, so it must be awaited.
   */
  follow(): Promise<void> | undefined
}

/** A key that was looked at, and that a transaction takes. */
export interface LookedKey {
  readonly entry: Entry
  /** A transaction has taken the key. */
  entered(): void
  /** Another attempt has it: waits if duplicates wait (`inFlightWaitMs`). Resolves with whether the key is free again. */
  freed(): Promise<boolean>
  /** It stays with the other attempt: whatever the handler answers, its client gets what the record says. */
  refuse(): void
  /** The work has ended its transaction itself: what it has written may be committed. */
  endedByWork(): void
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
   * A transaction opens: nothing of the response is sent until `left`.
   *
   * @throws IdempotencyError `transaction_late`: the response has begun.
   */
  entered(): void
  /** Discards the response since `entered` and restores the state at that time. */
  reset(): void
  /**
   * The work of the transaction resolved with `value`. If that is the answer, ends the run with it.
   *
   * @throws IdempotencyError `transaction_streamed`: the answer is not whole.
   */
  resolved(value: unknown): MaybePromise<void>
  /**
   * The transaction was rolled back, but its work still runs. Returns whether the work cannot give an answer any more: what is
   * answered from now on is the handler's own.
   */
  leftBehind(): boolean
  /** The transaction ended; if it was not committed, `reset` was called before. */
  left(): void
  /** The handler waits for nothing any more: if its answer is discarded, it gives no other. */
  readonly hasStopped: boolean
  /** `maxRunMs` has passed: whoever waits for an answer that was discarded, and that no other has followed, is told to retry. */
  timeOver(): void
  /**
   * The stored form of an answer that was given by hand.
   *
   * @throws IdempotencyError `arguments_invalid`.
   */
  answerOf(given: unknown): Answer
}
