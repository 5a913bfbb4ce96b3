import {
  type Answer,
  type AnswerSource,
  describeCause,
  type IdempotencyContext,
  IdempotencyError,
  isCertainFailure,
  type MaybePromise,
  NOT_KEPT,
  type RefusalCode,
  type Run,
  type RunEnd,
  recognizeAcrossCopies,
} from '../core/index.js'
import type { KeptResult, Results } from './results.js'
import type { RunnerEvent } from './runner-options.js'

interface RunTerms {
  readonly results: Results
  /** Never throws. */
  readonly isCertainFailure: (error: unknown) => boolean
  readonly emit: (event: RunnerEvent) => void
}

/** One run of an operation's function, from its claim to its caller's result. */
export class OperationRun implements AnswerSource {
  readonly #run: Run
  readonly #terms: RunTerms
  readonly #signal: AbortSignal | undefined
  /** How the run was ended, by a transaction or by the function, and the result of that. */
  #end: { readonly kept: KeptResult; readonly told: MaybePromise<RunEnd> } | undefined
  /** A transaction is open; resolves when it has ended. */
  #open: { readonly over: Promise<void>; close(): void } | undefined

  constructor(run: Run, terms: RunTerms, signal?: AbortSignal) {
    this.#run = run
    this.#terms = terms
    this.#signal = signal
    run.source = this
  }

  /**
   * The caller's result: what the record says, so repeats get the same.
   *
   * @throws what the function threw, unchanged; RefusedError; IdempotencyError `transaction_not_awaited`,
   * `decode_failed`.
   */
  async runFunction(work: (context: IdempotencyContext) => unknown): Promise<unknown> {
    let value: unknown
    try {
      value = await work(this.#run.context)
    } catch (error) {
      const end = await this.#fail(error)
      // Where nothing was claimed, another attempt may have succeeded meanwhile, or may be about to.
      if (this.#run.unclaimed !== undefined && end.action !== 'send') return this.#readRecordedEnd(end)
      throw error
    }
    const { kept, told } = (await this.#waitForTransactionEnd()) ?? this.#endWithValue(value)
    const end = await told
    return end.action === 'send' ? kept.result : this.#readRecordedEnd(end)
  }

  #readRecordedEnd(end: Exclude<RunEnd, { readonly action: 'send' }>): unknown {
    if (end.action === 'replay') return this.#terms.results.read(end.answer)
    // Another attempt has kept its transaction out, so nothing was committed.
    if (end.code === 'in_flight' && this.#run.unclaimed !== undefined) this.#signal?.throwIfAborted()
    throw new RefusedError(end.code, end.retryAfterMs, true)
  }

  /** The end of a run whose function did not await its transaction. */
  async #waitForTransactionEnd() {
    if (this.#open === undefined) return this.#end
    await this.#open.over
    if (this.#end !== undefined) return this.#end
    const error = transactionNotAwaitedError()
    await this.#fail(error)
    throw error
  }

  #endWithValue(value: unknown) {
    const kept = this.#keep(value)
    this.#end = { kept, told: this.#run.complete(kept.answer) }
    return this.#end
  }

  #keep(value: unknown): KeptResult {
    const { results, emit } = this.#terms
    try {
      return results.encodeResult(value)
    } catch (error) {
      // The function has had its effect; a failure here would run it again.
      const { scope, key, attempt } = this.#run.context
      emit({ type: 'result_not_kept', scope, key, attempt, error })
      return { answer: NOT_KEPT, result: value }
    }
  }

  async #fail(error: unknown): Promise<RunEnd> {
    if (isCertainFailure(error)) return this.#run.fail('certainly', 'certain_failure')
    const isCertain = !this.#run.isUncertain && this.#terms.isCertainFailure(error)
    return isCertain ? this.#run.fail('certainly', 'judged_certain') : this.#run.fail('perhaps', 'no_answer')
  }

  // --- in a transaction: the value of its work is the result

  onTransactionBegin(): void {
    let close!: () => void
    const over = new Promise<void>((resolve) => {
      close = resolve
    })
    this.#open = { over, close }
  }

  onRollback(): void {
    this.#end = undefined
  }

  onWorkResolved(value: unknown): void {
    this.#endWithValue(value)
  }

  /** The result is what the function returns. */
  onWorkLeftBehind(): boolean {
    this.onTransactionEnd()
    return true
  }

  onTransactionEnd(): void {
    this.#open?.close()
    this.#open = undefined
  }

  get hasStopped(): boolean {
    return false // What the function throws behind its transaction is offered as a failure.
  }

  onTimeOver(): void {}

  toStoredAnswer(given: unknown): Answer {
    try {
      return this.#terms.results.encodeResult(given).answer
    } catch (cause) {
      throw new IdempotencyError(
        'arguments_invalid',
        `The result that was given to completeIn() cannot be kept${describeCause(cause)}. Nothing was sent.`,
        { cause },
      )
    }
  }
}

function transactionNotAwaitedError(): IdempotencyError {
  return new IdempotencyError(
    'transaction_not_awaited',
    'The function of a run returned while its transaction was open, so the transaction was rolled back. Await what `transaction` ' +
      'returns.',
  )
}

/**
 * An operation was not run, or its result is not available. This is not misuse, so it is not an IdempotencyError. Check
 * `code`.
 *
 * - `in_flight`: another attempt is running it, or has taken it over from this one. Retry after `retryAfterMs`.
 * - `mismatched`: the key was used with another input. Nothing ran.
 * - `answer_not_kept`: it has run, and its result was not kept. It never runs again: check its effect.
 * - `outcome_unknown`: an earlier attempt may have had its effect (`unknownOutcome: 'refuse'`). Nothing ran: an
 *   operator must settle it with `resolve`.
 * - `transaction_missing`: with `effects: 'in-transaction'`, the function has returned without a transaction. Its outcome is unknown.
 * - `key_expired`: it was first sent (`firstSent`) so long ago that its record may be gone. Nothing ran: check its effect.
 * - `store_unavailable`: the store failed. Nothing ran, or its end could not be stored, as the message says: retry
 *   after `retryAfterMs`, with the same key.
 */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly code: RefusalCode
  /** After this time a retry is worthwhile; `null`: waiting does not help. */
  readonly retryAfterMs: number | null

  constructor(code: RefusalCode, retryAfterMs: number | null, hasRun: boolean) {
    super(hasRun ? WORDS_OF_A_RUN[code] : WORDS[code])
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}
recognizeAcrossCopies(RefusedError, 'RefusedError')

const WORDS: Readonly<Record<RefusalCode, string>> = {
  in_flight: 'The operation is already running: another attempt holds its key. Try again later, with the same key.',
  mismatched:
    'The key was used with another input: that operation has run, or may have. A new operation needs a new key; a repeat must have the ' +
    'same input.',
  answer_not_kept: 'The operation has run, but its result was not kept. It is not run again: check its effect.',
  outcome_unknown:
    'An earlier attempt may have had its effect, so the operation is not run again. Find out whether it had, and settle ' +
    'the key with `resolve`.',
  key_expired:
    'The operation was first sent so long ago that its record may be gone, so it is not run. Find out whether it had its effect.',
  store_unavailable:
    'The store gave no usable reply (the event `store_failed` says why), and nothing ran. Try again later, with the same key.',
  transaction_missing:
    "The function returned without a transaction, but with effects: 'in-transaction' all effects are inside one: what it did cannot be " +
    'seen. Do it inside the store’s `transaction`; if there is nothing to write: `transaction(context, work, { allowEmpty: true })`.',
}

/** The function has run, but the record says something else than its result. */
const WORDS_OF_A_RUN: Readonly<Record<RefusalCode, string>> = {
  ...WORDS,
  in_flight:
    'The function has run, but its lease was lost meanwhile: another attempt may hold the key. Try again later, with the ' +
    'same key.',
  store_unavailable:
    'The function has run, but its end could not be stored: it may have had its effect. Try again later, with the same key.',
}
