import {
  describeCause,
  type EngineEvent,
  type EngineOptions,
  engineOptions,
  findNamespaceFault,
  type OptionRule,
  optionRules,
  resolveOptions,
  warnOnce,
  warnUnheard,
} from '../core/index.js'
import type { AnyCodec } from './results.js'

/** The options that all runners share. All durations are integers, in milliseconds. */
export interface RunnerOptions extends Omit<EngineOptions, 'onEvent' | 'answerFault'> {
  /**
   * Separates this runner's operations from all others in the store: a word without a colon, a percent sign or a blank.
   * Runners with one name, even in different processes, share their operations.
   */
  readonly name: string

  /**
   * Whether an error of the function means that it certainly had no effect, so that its key is free. Not called after
   * `mayHaveEffect()`.
   * @default () => false: a call that timed out may have had its effect
   */
  readonly isCertainFailure?: ((error: unknown) => boolean) | undefined

  /**
   * A larger result is not kept: its caller gets it, and a repeat is refused with `answer_not_kept`.
   * @default 1_048_576 (1 MiB)
   */
  readonly maxAnswerBytes?: number | undefined

  /**
   * Receives an event for everything that happens.
   * @default none: the process prints its warnings
   */
  readonly onEvent?: ((event: RunnerEvent) => void) | undefined
}

export type AnyRunnerOptions = RunnerOptions & { readonly result?: AnyCodec | undefined }

interface ResolvedRunnerOptions {
  readonly namespace: string
  readonly result: AnyCodec | undefined
  readonly isCertainFailure: (error: unknown) => boolean
  readonly maxAnswerBytes: number
  readonly onEvent: ((event: RunnerEvent) => void) | undefined
  readonly ofEngine: EngineOptions
}

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveRunnerOptions(given: AnyRunnerOptions): ResolvedRunnerOptions {
  const options = resolveOptions<Options>('runner()', given, RUNNER_OPTIONS)
  const { name, result, isCertainFailure, maxAnswerBytes, onEvent, ...ofEngine } = options
  // No other namespace of the library, or of an application's engine, begins like this.
  return { namespace: `run.${name}`, result, isCertainFailure, maxAnswerBytes, onEvent, ofEngine }
}

type Options = Omit<ResolvedRunnerOptions, 'namespace' | 'ofEngine'> & Omit<RunnerOptions, 'onEvent'>

const { aFunction, anInteger } = optionRules
const { onEvent: _, answerFault: __, ...sharedOptions } = engineOptions

const findRunnerNameFault: OptionRule = (value) =>
  findNamespaceFault(value) === null ? null : "a word without a colon, a percent sign or a blank, such as 'payouts'"

const findCodecFault: OptionRule = (value) => {
  const { encode, decode } = (value ?? {}) as Partial<AnyCodec>
  return typeof encode === 'function' && typeof decode === 'function' ? null : '{ encode, decode }, two functions'
}

const RUNNER_OPTIONS = {
  name: { rule: findRunnerNameFault, isRequired: true },
  result: findCodecFault,
  isCertainFailure: { rule: aFunction, default: () => false },
  maxAnswerBytes: { rule: anInteger(0, Number.MAX_SAFE_INTEGER), default: 1_048_576 },
  onEvent: aFunction,
  scope: () => 'no such option: each call has its own scope, as in once({ scope, key, input }, work)',
  ...sharedOptions,
}

/** What happened. Contains no inputs and no results. An `error` is a copy of what was thrown, which JSON and loggers show. */
export type RunnerEvent =
  | EngineEvent
  /**
   * A result could not be kept: its caller got it, and a repeat is refused with `answer_not_kept`. `error` says why.
   */
  | {
      readonly type: 'result_not_kept'
      readonly scope: string
      readonly key: string
      readonly attempt: number
      readonly error: unknown
    }
  /** An option function failed where an error must not escape; its default was used. */
  | { readonly type: 'option_failed'; readonly option: 'isCertainFailure'; readonly error: unknown }

/** The default listener. */
export function printByDefault(event: RunnerEvent): void {
  if (event.type !== 'result_not_kept') {
    warnUnheard(event)
    return
  }
  warnOnce(
    'ONCE_PER_KEY_RESULT_NOT_KEPT',
    `A runner could not keep a result${describeCause(event.error)}. Its caller has it, but a repeat is refused with ` +
      'answer_not_kept: return JSON, give the runner `result: { encode, decode }`, or raise maxAnswerBytes. This is printed ' +
      'once; `onEvent` receives every case.',
  )
}
