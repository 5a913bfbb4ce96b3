import type { MaybePromise } from './maybe-promise.js'
import type { Answer } from './record.js'

/** Who makes the answer of a run, as a transaction needs it: a binding's. */
export interface AnswerSource {
  /**
   * A transaction opens: nothing of the answer is sent until `left`.
   *
   * @throws IdempotencyError `transaction_late`: an answer has begun.
   */
  entered(): void
  /** What was answered since `entered` does not count: all is as it was then. */
  reset(): void
  /**
   * The work of the transaction has resolved with `value`. Where that is the answer, the run is ended with it here.
   *
   * @throws IdempotencyError `transaction_streamed`: the answer is not whole.
   */
  resolved(value: unknown): MaybePromise<void>
  /** The transaction is over; `reset` was called before, if it came to nothing. */
  left(): void
  /**
   * An answer that is given by hand, as it is stored.
   *
   * @throws IdempotencyError `arguments_invalid`.
   */
  answerOf(given: unknown): Answer
}
