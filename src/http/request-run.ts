import type { AnswerSource } from '../core/answer-source.js'
import type { IdempotencyContext } from '../core/context.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import type { Settled as SettledInCore } from '../core/outcome.js'
import type { Answer } from '../core/record.js'
import type { Run } from '../core/run.js'
import { isEventStream, storedAnswer } from './answer.js'
import { judge } from './judgement.js'
import type { RequestRules } from './request-rules.js'
import { readAnswer } from './resolution.js'
import type { Settled } from './settled.js'

/**
 * One run of a request's handler, for the binding, which ends it with or without the handler's answer. If store and
 * options are synchronous, so is its end.
 */
export interface RequestRun {
  /** The context that the handler receives. */
  readonly context: IdempotencyContext
  /** The largest body that is kept: the limit of `keepsBody`. */
  readonly maxAnswerBytes: number
  /**
   * Whether a body of this size with this `Content-Type` is kept. If not, a whole one is settled with `body: null` and
   * then sent. One that is still being written is sent as it comes; at its end it is settled with `body: null` and
   * `confirmed`, and its end is sent only if the result is `'send'`.
   */
  keepsBody(byteLength: number, contentType: unknown): boolean
  /**
   * Ends the run with its answer, success or failure: the record changes first. Only the first end counts; later calls
   * get the first one's result. `confirmed`: a success that the store does not confirm in time is not sent, but refused
   * with `store_unavailable`; by default `unconfirmedSuccess` decides. Never throws, and never rejects.
   */
  settle(answer: Answer, terms?: { readonly confirmed?: boolean }): MaybePromise<Settled>
  /** Ends the run without an answer: a failure that may have had its effect. Never throws, and never rejects. */
  fail(): MaybePromise<Settled>
  /**
   * Whether the handler threw a `CertainFailure` that is being handled: then the run has certainly failed without
   * effect, whatever response is sent.
   */
  willFailCertainly(does: boolean): void
  /**
   * Resolves when nothing of the run is pending any more, behind its last event: for platforms that stop behind a response. It
   * may be later than what `settle` says: a completion that the store does not confirm in time is tried again.
   */
  ended(): Promise<void>
  /** Registers the holder of the response: a store's `transaction` asks it to reset the response. */
  heldBy(response: HeldAnswer): void
}

/** The holder of a response, for transactions: what the work sends is held until after the COMMIT, or discarded. */
export type HeldAnswer = Omit<AnswerSource, 'answerOf'>

/** Judges the handler's answer by the options, and ends the core's run with it. */
export class JudgedRun<Req> implements RequestRun, AnswerSource {
  readonly context: IdempotencyContext
  readonly maxAnswerBytes: number
  readonly #run: Run
  readonly #rules: RequestRules<Req>
  /** The request that the option functions receive; dropped at the end. */
  #request: Req | undefined
  /** The handler threw a `CertainFailure`, which is being handled. */
  #failsCertainly = false
  /** The result of the first end. */
  #settled: MaybePromise<Settled> | undefined
  /** The holder of the response, if one has registered. */
  #response: HeldAnswer | undefined

  constructor(run: Run, request: Req, rules: RequestRules<Req>) {
    this.context = run.context
    this.maxAnswerBytes = rules.options.maxAnswerBytes
    this.#run = run
    this.#rules = rules
    this.#request = request
    run.source = this
  }

  keepsBody(byteLength: number, contentType: unknown): boolean {
    return byteLength <= this.maxAnswerBytes && !isEventStream(contentType)
  }

  settle(answer: Answer, terms?: { readonly confirmed?: boolean }): MaybePromise<Settled> {
    this.#settled ??= this.#end(answer, terms?.confirmed)
    return this.#settled
  }

  fail(): MaybePromise<Settled> {
    this.#settled ??= this.#end(null, undefined)
    return this.#settled
  }

  willFailCertainly(does: boolean): void {
    this.#failsCertainly = does
  }

  ended(): Promise<void> {
    return this.#run.ended()
  }

  heldBy(response: HeldAnswer): void {
    this.#response = response
  }

  // --- in a transaction

  entered(): void {
    this.#response?.entered()
  }

  reset(): void {
    this.#settled = undefined
    this.#failsCertainly = false
    this.#response?.reset()
  }

  resolved(value: unknown): MaybePromise<void> {
    return this.#response?.resolved(value)
  }

  left(): void {
    this.#response?.left()
  }

  answerOf(given: unknown): Answer {
    const { options, functions } = this.#rules
    return storedAnswer(readAnswer(given, options.maxAnswerBytes), functions.keepHeader)
  }

  #end(answer: Answer | null, mustBeConfirmed: boolean | undefined): MaybePromise<Settled> {
    const run = this.#run
    const { functions } = this.#rules
    const facts = { isUncertain: run.isUncertain, failsCertainly: this.#failsCertainly }
    const judgement = judge(answer, this.#request as Req, facts, functions)
    if (!run.isInTransaction) this.#request = undefined
    const settled =
      judgement === 'success'
        ? run.complete(storedAnswer(answer as Answer, functions.keepHeader), mustBeConfirmed)
        : run.fail(judgement.how, judgement.because)
    return settled instanceof Promise ? this.#inHttpLater(settled) : this.#rules.inHttp(settled)
  }

  async #inHttpLater(settled: Promise<SettledInCore>): Promise<Settled> {
    return this.#rules.inHttp(await settled)
  }
}
