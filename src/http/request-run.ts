import type { AnswerSource } from '../core/answer-source.js'
import type { IdempotencyContext } from '../core/context.js'
import { type MaybePromise, whenever } from '../core/maybe-promise.js'
import type { Answer } from '../core/record.js'
import type { Run } from '../core/run.js'
import { isEventStream, storedAnswer } from './answer.js'
import { judge } from './judgement.js'
import type { RequestRules } from './request-rules.js'
import { readAnswer } from './resolution.js'
import type { Settled } from './settled.js'

/**
 * One run of a request's handler: for the binding, which ends it with the handler's answer, or without one. Where store and
 * options are synchronous, so is its end.
 */
export interface RequestRun {
  /** What the handler gets. */
  readonly context: IdempotencyContext
  /** How large a body may be to be kept: what `keepsBody` goes by. */
  readonly maxAnswerBytes: number
  /**
   * Whether a body of so many bytes with this `Content-Type` is kept. If not: a whole one is settled with `body: null`, then
   * sent. One that is still being written is sent as it comes; at its end it is settled so, `confirmed`, and its end is sent
   * only where that says `'send'`.
   */
  keepsBody(byteLength: number, contentType: unknown): boolean
  /**
   * Ends the run with its answer, success or failure: the record changes first. Only the first end counts; a later one
   * is told what the first was told. `confirmed`: a success that the store does not confirm in time is not sent, but refused
   * with `store_unavailable`; by default as `unconfirmedSuccess` says. Never throws, and never rejects.
   */
  settle(answer: Answer, terms?: { readonly confirmed?: boolean }): MaybePromise<Settled>
  /** Ends the run without an answer: a failure that may have had its effect. Never throws, and never rejects. */
  fail(): MaybePromise<Settled>
  /**
   * Whether the handler threw a `CertainFailure` that is being handled: whatever is answered then, the run has failed,
   * certainly without effect.
   */
  willFailCertainly(does: boolean): void
  /**
   * Resolves when nothing of the run is pending any more, behind its last event: for platforms that stop behind a response. It
   * may be later than what `settle` says: a completion that the store does not confirm in time is tried again.
   */
  ended(): Promise<void>
  /** Tells the run who holds its response: a transaction of the handler's asks it to begin anew (`transaction` of a store). */
  heldBy(response: HeldAnswer): void
}

/** Who holds a response, as a transaction needs it: what the work answers is sent behind the COMMIT, or does not count. */
export type HeldAnswer = Omit<AnswerSource, 'answerOf'>

/** Judges what the handler answers by the options, and ends the core's run with it. */
export class JudgedRun<Req> implements RequestRun, AnswerSource {
  readonly context: IdempotencyContext
  readonly maxAnswerBytes: number
  readonly #run: Run
  readonly #rules: RequestRules<Req>
  /** What the option functions are given; dropped at the end. */
  #request: Req | undefined
  /** The handler threw a `CertainFailure`, which is being handled. */
  #failsCertainly = false
  /** What whoever ended it first was told. */
  #settled: MaybePromise<Settled> | undefined
  /** Who holds the response, if anybody said so. */
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

  settle(answer: Answer, { confirmed }: { readonly confirmed?: boolean } = {}): MaybePromise<Settled> {
    this.#settled ??= this.#end(answer, confirmed)
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
    return whenever(settled, (end) => this.#rules.inHttp(end))
  }
}
