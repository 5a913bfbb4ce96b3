import {
  type Answer,
  type AnswerSource,
  type IdempotencyContext,
  IdempotencyError,
  inItsWords,
  isCertainFailure,
  type MaybePromise,
  NOT_KEPT,
  type Run,
  type RunEnd,
} from '../core/index.js'
import { RefusedError } from './refused-error.js'
import type { KeptResult, Results } from './results.js'
import type { RunnerEvent } from './runner-options.js'

/** What all runs of a runner share. */
export interface RunTerms {
  readonly results: Results
  /** Never throws. */
  readonly isCertainFailure: (error: unknown) => boolean
  readonly emit: (event: RunnerEvent) => void
}

/** One run of an operation's function, from its claim to its caller's result. */
export class OperationRun implements AnswerSource {
  readonly #run: Run
  readonly #terms: RunTerms
  /** How the run was ended, by a transaction or by the function, and the result of that. */
  #end: { readonly kept: KeptResult; readonly told: MaybePromise<RunEnd> } | undefined
  /** A transaction is open; resolves when it has ended. */
  #open: { readonly over: Promise<void>; close(): void } | undefined

  constructor(run: Run, terms: RunTerms) {
    this.#run = run
    this.#terms = terms
    run.source = this
  }

  /**
   * The caller's result: what the record says, so repeats get the same.
   *
   * @throws what the function threw, unchanged; RefusedError; IdempotencyError `transaction_not_awaited`,
   * `decode_failed`.
   */
  async outcomeOf(work: (context: IdempotencyContext) => unknown): Promise<unknown> {
    let value: unknown
    try {
      value = await work(this.#run.context)
    } catch (error) {
      const end = await this.#fail(error)
      // Where nothing was claimed, another attempt may have succeeded meanwhile, or may be about to.
      if (this.#run.looked !== undefined && end.action !== 'send') return this.#recorded(end)
      throw error
    }
    const { kept, told } = (await this.#untilOver()) ?? this.#ended(value)
    const end = await told
    return end.action === 'send' ? kept.result : this.#recorded(end)
  }

  /** What the record says in place of the function. */
  #recorded(end: Exclude<RunEnd, { readonly action: 'send' }>): unknown {
    if (end.action === 'replay') return this.#terms.results.read(end.answer)
    throw new RefusedError(end.code, end.retryAfterMs, true)
  }

  /** The end of a run whose function did not await its transaction. */
  async #untilOver() {
    if (this.#open === undefined) return this.#end
    await this.#open.over
    if (this.#end !== undefined) return this.#end
    const error = transactionNotAwaited()
    await this.#fail(error)
    throw error
  }

  #ended(value: unknown) {
    const kept = this.#keep(value)
    this.#end = { kept, told: this.#run.complete(kept.answer) }
    return this.#end
  }

  #keep(value: unknown): KeptResult {
    const { results, emit } = this.#terms
    try {
      return results.kept(value)
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

  entered(): void {
    let close!: () => void
    const over = new Promise<void>((resolve) => {
      close = resolve
    })
    this.#open = { over, close }
  }

  reset(): void {
    this.#end = undefined
  }

  resolved(value: unknown): void {
    this.#ended(value)
  }

  /** The result is what the function returns. */
  leftBehind(): boolean {
    this.left()
    return true
  }

  left(): void {
    this.#open?.close()
    this.#open = undefined
  }

  answerOf(given: unknown): Answer {
    try {
      return this.#terms.results.kept(given).answer
    } catch (cause) {
      throw new IdempotencyError(
        'arguments_invalid',
        `The result that was given to completeIn() cannot be kept${inItsWords(cause)}. Nothing was sent.`,
        { cause },
      )
    }
  }
}

function transactionNotAwaited(): IdempotencyError {
  return new IdempotencyError(
    'transaction_not_awaited',
    'The function of a run returned while its transaction was open, so the transaction was rolled back. Await what `transaction` ' +
      'returns.',
  )
}
