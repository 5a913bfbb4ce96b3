import type { Run } from './history.js'
import type { Random } from './random.js'
import type { Setting } from './setting.js'

/** How a handler ends. */
export interface Ending {
  /** Of its answer; `null`: it has none. */
  readonly status: number | null
  /** It throws a `CertainFailure`, and the answer is its error handler's. */
  readonly isThrown: boolean
}

export const NO_ANSWER: Ending = { status: null, isThrown: false }

const SUCCESSES = [200, 201, 202, 302, 303]
const FAILURES = [400, 408, 409, 422, 499, 500, 503, 307]

export function endingOf(random: Random, willSucceed: boolean): Ending {
  if (willSucceed) return { status: random.pick(SUCCESSES), isThrown: false }
  if (random.chance(0.3)) return NO_ANSWER
  return { status: random.pick(FAILURES), isThrown: random.chance(0.15) }
}

export function isSuccess({ succeeds }: Setting, { status, isThrown }: Ending): boolean {
  return status !== null && !isThrown && succeeds(status)
}

/**
 * The contract's table of ends, written a second time: whether a failure certainly had no effect, as far as its own run goes.
 * `isJudged`: the application is asked, which it is not where a step has begun.
 */
export function isCertain(
  setting: Setting,
  { mayHaveEffect }: Pick<Run, 'mayHaveEffect'>,
  ending: Ending,
  isJudged = true,
): boolean {
  const { status, isThrown } = ending
  if (mayHaveEffect) return false
  if (isThrown || setting.options.effects === 'declared') return true
  if (status === null) return false
  return (
    (status >= 400 && status <= 499 && status !== 408 && status !== 499) ||
    (isJudged && setting.isCalledCertain(status))
  )
}
