import { ignoreRejection } from '../../core/maybe-promise.js'
import type { Answer } from '../../core/record/record.js'
import { isSuccessStatus } from '../answer/answer.js'
import { problemAnswer } from '../answer/problem.js'
import type { KeepHeader, ResolvedOptions } from '../options/options.js'
import type { IdempotencyEvent, Problem, RenderProblem } from '../options/problem.js'

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
export function optionFunctions<Req>(
  options: ResolvedOptions<Req>,
  emit: (event: IdempotencyEvent) => void,
): OptionFunctions<Req> {
  const { isSuccess, isCertainFailure, keepFailure, keepHeader, streams, renderProblem } = options
  return {
    isSuccess: guarded('isSuccess', isSuccess && ((answer, request) => verdict(isSuccess(answer, request))), (answer) =>
      isSuccessStatus(answer.status),
    ),
    isCertainFailure: guarded(
      'isCertainFailure',
      isCertainFailure && ((answer, request) => verdict(isCertainFailure(answer, request))),
      () => false,
    ),
    keepFailure: guarded(
      'keepFailure',
      keepFailure && ((answer, request) => verdict(keepFailure(answer, request))),
      () => false,
    ),
    keepHeader: guarded(
      'keepHeader',
      keepHeader && ((name, byDefault) => verdict(keepHeader(name, byDefault))),
      (_name, byDefault) => byDefault,
    ),
    streams:
      streams &&
      guarded<[string, Req], boolean>(
        'streams',
        (type, request) => verdict(streams(type, request)),
        () => false,
      ),
    renderProblem: guarded(
      'renderProblem',
      renderProblem && ((problem, request) => problemAnswer(problem, rendering(renderProblem(problem, request)))),
      (problem) => problemAnswer(problem),
    ),
  }

  function guarded<Args extends unknown[], Result>(
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
function verdict(value: unknown): boolean {
  if (typeof value === 'boolean') return value
  ignoreRejection(value)
  throw new TypeError(
    `The function must return true or false, not ${value === null ? 'null' : `a value of type ${typeof value}`}.`,
  )
}

/** An invalid rendering must not become an empty body, or fail while the response is sent. */
function rendering(value: ReturnType<RenderProblem<never>>): ReturnType<RenderProblem<never>> {
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
