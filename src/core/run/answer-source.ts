import type { MaybePromise } from '../maybe-promise.js'
import type { Answer } from '../record/record.js'

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
  /**
   * The stored form of an answer that was given by hand.
   *
   * @throws IdempotencyError `arguments_invalid`.
   */
  answerOf(given: unknown): Answer
}
