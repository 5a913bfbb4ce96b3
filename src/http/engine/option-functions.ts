import type { Refused, Replayed } from '../../core/events/refusal.js'
import { ignoreRejection } from '../../core/maybe-promise.js'
import type { Answer } from '../../core/record/record.js'
import { isSuccessStatus, markAsReplay } from '../answer/answer.js'
import { createProblem, MAY_HAVE_RUN, toProblemAnswer } from '../answer/problem.js'
import type { KeepHeader, ResolvedOptions } from '../options/options.js'
import type { IdempotencyEvent, Problem, ProblemCode, RenderProblem } from '../options/problem.js'
import type { Rejected, Replay } from './request-run.js'

type OptionName = Extract<IdempotencyEvent, { type: 'option_failed' }>['option']

/** The application's functions that are called where an error must not escape: the handler has run, or must not run. */
export interface OptionFunctions<Req> {
  readonly isSuccess: (answer: Answer, request: Req) => boolean
  readonly isCertainFailure: (answer: Answer, request: Req) => boolean
  /** Only for answers below 500 that have a body. */
  readonly keepFailure: (answer: Answer, request: Req) => boolean
  readonly keepHeader: KeepHeader
  /** `undefined`: only event streams are. */
  readonly streams: ((contentType: string, request: Req) => boolean) | undefined
  readonly renderProblem: (problem: Problem, request: Req) => Answer
}

/** Each function with its default. If the application's function fails, its default is used, with an event. */
export function createOptionFunctions<Req>(
  options: ResolvedOptions<Req>,
  emit: (event: IdempotencyEvent) => void,
): OptionFunctions<Req> {
  const { isSuccess, isCertainFailure, keepFailure, keepHeader, streams, renderProblem } = options
  return {
    isSuccess: guardPredicate('isSuccess', isSuccess, ({ status }) => isSuccessStatus(status)),
    isCertainFailure: guardPredicate('isCertainFailure', isCertainFailure, () => false),
    keepFailure: guardPredicate('keepFailure', keepFailure, () => false),
    keepHeader: guardPredicate('keepHeader', keepHeader, (_name, byDefault) => byDefault),
    streams: streams && guardPredicate('streams', streams, () => false),
    renderProblem: guardFunction(
      'renderProblem',
      renderProblem && ((problem, request) => toProblemAnswer(problem, readRendering(renderProblem(problem, request)))),
      (problem) => toProblemAnswer(problem),
    ),
  }

  function guardPredicate<Args extends unknown[]>(
    option: OptionName,
    given: ((...args: Args) => boolean) | undefined,
    byDefault: (...args: Args) => boolean,
  ): (...args: Args) => boolean {
    return guardFunction(option, given && ((...args) => readVerdict(given(...args))), byDefault)
  }

  function guardFunction<Args extends unknown[], Result>(
    option: OptionName,
    given: ((...args: Args) => Result) | undefined,
    byDefault: (...args: Args) => Result,
  ): (...args: Args) => Result {
    if (given === undefined) return byDefault
    return (...args) => {
      try {
        return given(...args)
      } catch (error) {
        emit({ type: 'option_failed', option, error })
        return byDefault(...args)
      }
    }
  }
}

/** A promise, which is truthy, is not a valid result. */
function readVerdict(value: unknown): boolean {
  if (typeof value === 'boolean') return value
  ignoreRejection(value)
  throw new TypeError(
    `The function must return true or false, not ${value === null ? 'null' : `a value of type ${typeof value}`}.`,
  )
}

/** An invalid rendering must not become an empty body, or fail while the response is sent. */
function readRendering(value: ReturnType<RenderProblem<never>>): ReturnType<RenderProblem<never>> {
  const { contentType, body } = value ?? {}
  const right =
    (typeof body === 'string' || (typeof body === 'object' && body !== null)) &&
    (contentType === undefined || (typeof contentType === 'string' && FIELD_VALUE.test(contentType)))
  if (right) return value
  ignoreRejection(value)
  throw new TypeError('The function must return { contentType?: a media type, body: a string or an object }.')
}

/** The characters of a header value: RFC 9110 §5.5, "field-content". */
const FIELD_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/

/** Translates the core's results into HTTP, by the options. */
export class RequestRules<Req> {
  readonly options: ResolvedOptions<Req>
  readonly functions: OptionFunctions<Req>

  constructor(options: ResolvedOptions<Req>, functions: OptionFunctions<Req>) {
    this.options = options
    this.functions = functions
  }

  /** An answer from a record becomes a replay, and a refusal a problem; anything else is returned unchanged. */
  toHttpOutcome<Other extends { readonly action: string }>(
    outcome: Other | Replayed | Refused,
  ): Exclude<Other, Replayed | Refused> | Replay | Rejected {
    switch (outcome.action) {
      case 'replay': {
        const { answer, isOwn } = outcome as Replayed
        return { action: 'replay', answer: isOwn ? answer : markAsReplay(answer) }
      }
      case 'refuse': {
        const { code, retryAfterMs, mayHaveRun } = outcome as Refused
        return this.reject(code, mayHaveRun && code === 'store_unavailable' ? MAY_HAVE_RUN : undefined, retryAfterMs)
      }
      default:
        return outcome as Exclude<Other, Replayed | Refused>
    }
  }

  reject(code: ProblemCode, detail?: string, retryAfterMs?: number | null): Rejected {
    const { problemStatuses } = this.options
    const terms = { problemStatuses, retryAfterMs: retryAfterMs ?? this.options.retryAfterMs }
    return { action: 'reject', problem: this.#toPublishedProblem(createProblem(code, terms, detail)) }
  }

  /** An expired key's client learns for how long others are kept. */
  #toPublishedProblem(given: Problem): Problem {
    const { retentionMs, unknownRetentionMs, documentation } = this.options
    const problem = documentation === undefined ? given : { ...given, type: documentation, documentation }
    return problem.code !== 'key_expired'
      ? problem
      : { ...problem, retentionSeconds: Math.floor(Math.min(retentionMs, unknownRetentionMs) / 1_000) }
  }
}
