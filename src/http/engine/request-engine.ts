import { createOperationEngine, type OperationEngine } from '../../core/engine/engine.js'
import { guardListener, warnUnheard } from '../../core/events/events.js'
import { publishBefore, traceEvent } from '../../core/events/trace.js'
import { type MaybePromise, whenever } from '../../core/maybe-promise.js'
import { mountedTwiceError } from '../../core/misuse.js'
import type { Identity } from '../../core/record/identity.js'
import type { Answer } from '../../core/record/record.js'
import { findSendingFault } from '../answer/answer.js'
import { pickEngineOptions, resolveRequestOptions } from '../options/option-rules.js'
import type { IdempotencyOptions } from '../options/options.js'
import type { IdempotencyEvent } from '../options/problem.js'
import type { HeaderPairs, RequestFacts } from '../request/facts.js'
import { shouldReadBody } from '../request/request-body.js'
import { createRequestIdentifier, type IdentityReading } from '../request/request-identity.js'
import { addExtraHeaders, isInsideItself, JudgedRun } from './judged-run.js'
import { type Controls, createOperator, type Operator } from './operator.js'
import { createOptionFunctions, RequestRules } from './option-functions.js'
import type { Decision, Rejected, Replay } from './request-run.js'

/** The part of a binding that decides what to do with each request. */
export interface RequestEngine<Req> extends Controls {
  /**
   * Whether the decision on a request depends on its body. If not, a binding that reads bodies itself leaves the body
   * unread, and passes no body.
   */
  readsBody(head: Pick<RequestFacts, 'method' | 'rawHeaders' | 'headers'>): boolean
  /**
   * Decides what to do with a request; synchronously if store and options are synchronous.
   *
   * @throws IdempotencyError (or rejects with it) for misuse by the application: pass it to the framework's error
   * handling. The handler must not run; nothing was stored.
   */
  decide(facts: RequestFacts<Req>): MaybePromise<Decision>
  /**
   * The same for an operation that is not identified by a request's key, for example an event by its id. Scope and key
   * must be well-formed strings (`isWellFormed`); nothing else is checked here.
   */
  claim(identity: Identity, asker: Asker<Req>): MaybePromise<Exclude<Decision, { action: 'bypass' }>>
  /** The response to send in place of the handler's: a stored answer, or a problem in the format of `renderProblem`. */
  answerFor(decision: Replay | Rejected, request: Req): Answer
  /**
   * Counts work as in progress until it has ended: `idle` waits for it too. Returns, throws or rejects as the work
   * does.
   */
  during<Result>(work: () => MaybePromise<Result>): MaybePromise<Result>
}

/** The request that the option functions receive, and whether its client is still there. */
export type Asker<Req> = Pick<RequestFacts<Req>, 'request' | 'isAbandoned'>

/**
 * The deciding part without a framework: for your own binding.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function createRequestEngine<Req = unknown>(given: IdempotencyOptions<Req>): RequestEngine<Req> {
  const options = resolveRequestOptions(given)
  const { onEvent } = options
  const emit = publishBefore(guardListener<IdempotencyEvent>(onEvent ?? warnUnheard))
  const rules = new RequestRules(options, createOptionFunctions(options, emit))
  const engine = createOperationEngine({
    ...pickEngineOptions(options),
    ...(onEvent !== undefined && { onEvent }),
    answerFault: findSendingFault,
  })
  return new Decider(rules, engine, createRequestIdentifier(options), emit)
}

class Decider<Req> implements RequestEngine<Req> {
  readonly #rules: RequestRules<Req>
  readonly #engine: OperationEngine
  readonly #identityOf: (facts: RequestFacts<Req>) => MaybePromise<IdentityReading>
  readonly #emit: (event: IdempotencyEvent) => void
  #operator: Operator | undefined

  constructor(
    rules: RequestRules<Req>,
    engine: OperationEngine,
    identityOf: (facts: RequestFacts<Req>) => MaybePromise<IdentityReading>,
    emit: (event: IdempotencyEvent) => void,
  ) {
    this.#rules = rules
    this.#engine = engine
    this.#identityOf = identityOf
    this.#emit = emit
  }

  readsBody(head: Pick<RequestFacts, 'method' | 'rawHeaders' | 'headers'>): boolean {
    return shouldReadBody(head, this.#rules.options)
  }

  decide(facts: RequestFacts<Req>): MaybePromise<Decision> {
    const identified = this.#identityOf(facts)
    // It may start a run even after its client has gone.
    return identified instanceof Promise
      ? this.#engine.during(() => identified.then((later) => this.#decideOn(later, facts)))
      : this.#decideOn(identified, facts)
  }

  #decideOn(identified: IdentityReading, facts: RequestFacts<Req>): MaybePromise<Decision> {
    switch (identified.kind) {
      case 'bypass':
        traceEvent(BYPASSED)
        return BYPASS
      case 'rejected': {
        const { code, detail, extraHeaders } = identified
        this.#emit({ type: 'rejected', code })
        return addExtraHeaders(this.#rules.reject(code, detail), extraHeaders)
      }
      case 'identified': {
        const { identity, extraHeaders } = identified
        if (isInsideItself(this.#rules, identity)) throw mountedTwiceError()
        return this.#claim(identity, facts, extraHeaders)
      }
    }
  }

  claim(identity: Identity, asker: Asker<Req>): MaybePromise<Claim> {
    return this.#claim(identity, asker, undefined)
  }

  #claim(identity: Identity, asker: Asker<Req>, extraHeaders: HeaderPairs | undefined): MaybePromise<Claim> {
    return whenever(
      this.#engine.claim(identity, () => asker.isAbandoned()),
      (claimed) =>
        addExtraHeaders<Claim>(
          claimed.action === 'execute'
            ? { action: 'execute', run: new JudgedRun(claimed.run, asker.request, identity, this.#rules) }
            : this.#rules.toHttpOutcome(claimed),
          extraHeaders,
        ),
    )
  }

  answerFor(decision: Replay | Rejected, request: Req): Answer {
    return decision.action === 'replay'
      ? decision.answer
      : this.#rules.functions.renderProblem(decision.problem, request)
  }

  during<Result>(work: () => MaybePromise<Result>): MaybePromise<Result> {
    return this.#engine.during(work)
  }

  idle(): Promise<void> {
    return this.#engine.idle()
  }

  /** Made when first used: requests do without it. */
  #getOperator(): Operator {
    this.#operator ??= createOperator(this.#engine, this.#rules)
    return this.#operator
  }

  readonly inspect: Operator['inspect'] = (name) => this.#getOperator().inspect(name)
  readonly unknown: Operator['unknown'] = () => this.#getOperator().unknown()
  readonly resolve: Operator['resolve'] = (name, as) => this.#getOperator().resolve(name, as)
}

/** What becomes of a request that is covered. */
type Claim = Exclude<Decision, { action: 'bypass' }>

const BYPASS: Decision = Object.freeze({ action: 'bypass' })
const BYPASSED = Object.freeze({ type: 'bypassed' })
