import { AsyncLocalStorage } from 'node:async_hooks'
import { isCertainFailure, isRefusalStatus } from '../../core/errors.js'
import type { FailureReason } from '../../core/events/events.js'
import { createUnconfirmedRefusal, type RunEnd } from '../../core/events/refusal.js'
import { type MaybePromise, whenever } from '../../core/maybe-promise.js'
import type { Identity } from '../../core/record/identity.js'
import type { Answer } from '../../core/record/record.js'
import type { IdempotencyContext } from '../../core/run/context.js'
import type { AnswerSource, ClaimedRun } from '../../core/run/run-end.js'
import { isEventStream, toStoredAnswer } from '../answer/answer.js'
import type { HeaderPairs } from '../request/facts.js'
import { isForeignError } from './foreign-error.js'
import { readAnswer } from './operator.js'
import type { OptionFunctions, RequestRules } from './option-functions.js'
import type { AnswerBuffer, RequestEnd, RequestRun } from './request-run.js'

/** The run of a request: judges the handler's answer by the options. */
export class JudgedRun<Req> implements RequestRun, AnswerSource {
  readonly #rules: RequestRules<Req>
  readonly #run: ClaimedRun
  /** The request that the option functions receive; dropped at the end. */
  #request: Req | undefined
  /** What the handler threw, while that is being handled. */
  #thrown: ThrownKind = 'nothing'
  /** The handler has returned what to send: a status of another answer is no refusal of the handler's. */
  #willNotRefuse = false
  /** The result of its first end. */
  #end: MaybePromise<RequestEnd> | undefined = undefined
  /** A first end was given. */
  #hasEnd = false
  /** Tells those whose answer was rolled back. */
  #discarded: ((end: RequestEnd) => void)[] = []
  hasStopped = false
  #response: AnswerBuffer | undefined = undefined

  readonly #identity: Identity
  /** While its handler runs, where the binding calls it by `inside`. */
  #work: HandlerWork | undefined = undefined

  constructor(run: ClaimedRun, request: Req, identity: Identity, rules: RequestRules<Req>) {
    this.#rules = rules
    this.#identity = identity
    this.#request = request
    this.#run = run
    run.source = this
  }

  get context(): IdempotencyContext {
    return this.#run.context
  }

  get maxAnswerBytes(): number {
    return this.#rules.options.maxAnswerBytes
  }

  get maySendParts(): boolean {
    return this.#run.unclaimed === undefined
  }

  keepsBody(byteLength: number, contentType: unknown): boolean {
    // Outside of its transaction such a run keeps nothing, and sends nothing before its end was judged.
    if (!this.maySendParts && !this.#run.isInTransaction) return true
    if (byteLength > this.maxAnswerBytes || isEventStream(contentType)) return false
    const { streams } = this.#rules.functions
    if (streams === undefined || this.#hasEnd || typeof contentType !== 'string') return true
    return !streams(contentType, this.#request as Req)
  }

  settle(answer: Answer, terms?: { readonly confirmed?: boolean }): MaybePromise<RequestEnd> {
    return this.#endOnce(answer, terms?.confirmed)
  }

  fail(): MaybePromise<RequestEnd> {
    return this.#endOnce(null, undefined)
  }

  failUncalled(): MaybePromise<RequestEnd> {
    this.#thrown = 'certain'
    return this.fail()
  }

  /** After a foreign error the error handlers' own errors say no more than their statuses. */
  reportError(error: unknown): void {
    if (isCertainFailure(error)) this.#thrown = 'certain'
    else if (this.#thrown !== 'foreign') this.#thrown = isForeignError(error) ? 'foreign' : 'nothing'
  }

  forgetError(): void {
    this.#thrown = 'nothing'
  }

  willNotRefuse(): void {
    this.#willNotRefuse = true
  }

  ended(): Promise<void> {
    return this.#run.ended()
  }

  registerBuffer(response: AnswerBuffer): void {
    this.#response = response
  }

  inside<Result>(handler: () => Result): Result {
    this.#work = new HandlerWork(this.#rules, this.#identity)
    return CALLED.run(this.#work, handler)
  }

  #endOnce(answer: Answer | null, mustBeConfirmed: boolean | undefined): MaybePromise<RequestEnd> {
    if (!this.#hasEnd) {
      this.#hasEnd = true
      if (this.#work !== undefined) this.#work.isOver = true
      const end = whenever(this.#judgeAndEnd(answer, mustBeConfirmed), (told) => this.#rules.toHttpOutcome(told))
      this.#end = this.#run.isInTransaction ? this.#raceWithDiscard(end) : end
    }
    return this.#end ?? whenever(this.#run.fail('perhaps', 'no_answer'), (told) => this.#rules.toHttpOutcome(told))
  }

  /** An answer that a transaction discards gets no result, unless nothing follows in time. */
  #raceWithDiscard(end: MaybePromise<RequestEnd>): Promise<RequestEnd> {
    return Promise.race([end, new Promise<RequestEnd>((resolve) => this.#discarded.push(resolve))])
  }

  #judgeAndEnd(answer: Answer | null, mustBeConfirmed: boolean | undefined): MaybePromise<RunEnd> {
    const run = this.#run
    const request = this.#request as Req
    const { functions } = this.#rules
    const judged = judge(answer, request, run.isUncertain, this.#thrown, !this.#willNotRefuse, functions)
    const kept = judged === 'success' ? undefined : findKeptFailure(answer, request, functions)
    if (!run.isInTransaction) this.#request = undefined
    return judged === 'success'
      ? run.complete(toStoredAnswer(answer as Answer, functions.keepHeader), mustBeConfirmed)
      : run.fail(judged.how, judged.because, kept)
  }

  // --- in a transaction

  stopped(): void {
    this.hasStopped = true
  }

  onTransactionBegin(): void {
    this.#response?.onTransactionBegin?.()
  }

  onRollback(): void {
    this.#hasEnd = false
    this.#end = undefined
    this.forgetError()
    this.#response?.onRollback()
  }

  onWorkResolved(value: unknown): MaybePromise<void> {
    return this.#response?.onWorkResolved(value)
  }

  onWorkLeftBehind(): boolean {
    return this.#response?.answersByReturning ?? false
  }

  onTransactionEnd(): void {
    this.#response?.onTransactionEnd?.()
  }

  onTimeOver(): void {
    if (this.#hasEnd || this.#run.isInTransaction) return
    for (const tell of this.#discarded) tell(this.#rules.toHttpOutcome(createUnconfirmedRefusal(this.#rules.options)))
  }

  toStoredAnswer(given: unknown): Answer {
    const { options, functions } = this.#rules
    return toStoredAnswer(readAnswer(given, options.maxAnswerBytes), functions.keepHeader)
  }
}

/** Nothing else tells that a request is sent by the handler of another one. */
const CALLED = new AsyncLocalStorage<HandlerWork>()

/** The work of a handler. What it starts runs in its async context, also when the run has ended. */
class HandlerWork {
  isOver = false
  /** The one inside which it is called. */
  around = findCurrentWork()
  readonly #rules: object
  readonly #identity: Identity

  constructor(rules: object, identity: Identity) {
    this.#rules = rules
    this.#identity = identity
  }

  isOfOperation(rules: object, { scope, key, path }: Identity): boolean {
    const own = this.#identity
    return rules === this.#rules && key === own.key && scope === own.scope && path === own.path
  }
}

/** That work, or the next around it that goes on: what has ended is not kept. */
function findOpenWork(work: HandlerWork | undefined): HandlerWork | undefined {
  let found = work
  while (found?.isOver === true) found = found.around
  return found
}

function findCurrentWork(): HandlerWork | undefined {
  const work = findOpenWork(CALLED.getStore())
  if (work !== undefined) work.around = findOpenWork(work.around)
  return work
}

/** Whether a handler of these rules dispatches its own operation again. */
export function isInsideItself(rules: object, identity: Identity): boolean {
  let work = findCurrentWork()
  while (work !== undefined && !work.isOfOperation(rules, identity)) work = findOpenWork(work.around)
  return work !== undefined
}

/** A failure as retries get it; `undefined`: they do not. One of 500 or more never is, because its outcome is unknown. */
function findKeptFailure<Req>(
  answer: Answer | null,
  request: Req,
  { keepFailure, keepHeader }: Pick<OptionFunctions<Req>, 'keepFailure' | 'keepHeader'>,
): Answer | undefined {
  if (answer === null || answer.body === null || answer.status >= 500) return undefined
  if (!keepFailure(answer, request)) return undefined
  const stored = toStoredAnswer(answer, keepHeader)
  return stored.body === null ? undefined : stored
}

export function addExtraHeaders<Each extends object>(decision: Each, extraHeaders: HeaderPairs | undefined): Each {
  return extraHeaders === undefined ? decision : { ...decision, extraHeaders }
}

/**
 * What the handler threw, as far as it decides what its answer says: a `CertainFailure`, an error of another service or of the system, or
 * nothing of the kind.
 */
type ThrownKind = 'certain' | 'foreign' | 'nothing'

/** How a run ended, according to its answer. */
type Verdict = 'success' | { readonly how: 'certainly' | 'perhaps'; readonly because: FailureReason }

/**
 * Judges a run by its answer (`null` if it has none). A failure is uncertain unless something shows that it is certain.
 * `isUncertain`: any failure leaves the outcome unknown, so `isCertainFailure` is not called. `mayRefuse`: a status is the
 * handler's refusal.
 */
function judge<Req>(
  answer: Answer | null,
  request: Req,
  isUncertain: boolean,
  thrown: ThrownKind,
  mayRefuse: boolean,
  functions: Pick<OptionFunctions<Req>, 'isSuccess' | 'isCertainFailure'>,
): Verdict {
  if (thrown === 'certain') return { how: 'certainly', because: 'certain_failure' }
  if (answer === null) return { how: 'perhaps', because: 'no_answer' }
  if (functions.isSuccess(answer, request)) return 'success'
  if (mayRefuse && thrown !== 'foreign' && isRefusalStatus(answer.status))
    return { how: 'certainly', because: 'refused' }
  if (!isUncertain && functions.isCertainFailure(answer, request)) {
    return { how: 'certainly', because: 'judged_certain' }
  }
  return { how: 'perhaps', because: thrown === 'foreign' ? 'foreign_error' : 'status' }
}
