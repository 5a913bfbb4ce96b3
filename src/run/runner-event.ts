import { type EngineEvent, inItsWords, warnOnce, warnUnheard } from '../core/index.js'

/** What happened. Contains no inputs and no results. */
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
    `A runner could not keep a result${inItsWords(event.error)}. Its caller has it, but a repeat is refused with ` +
      'answer_not_kept: return JSON, give the runner `result: { encode, decode }`, or raise maxAnswerBytes. This is printed ' +
      'once; `onEvent` receives every case.',
  )
}
