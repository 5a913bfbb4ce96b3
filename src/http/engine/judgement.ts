import { isRefusalStatus } from '../../core/certain-failure.js'
import type { FailureReason } from '../../core/events/events.js'
import type { Answer } from '../../core/record/record.js'
import type { OptionFunctions } from './option-functions.js'

/** How a run ended, according to its answer. */
export type Judgement = 'success' | { readonly how: 'certainly' | 'perhaps'; readonly because: FailureReason }

/**
 * Judges a run by its answer (`null` if it has none). A failure is uncertain unless something shows that it is certain.
 * `isUncertain`: any failure leaves the outcome unknown, so `isCertainFailure` is not called. `failsCertainly`: the handler
 * threw a `CertainFailure`.
 */
export function judge<Req>(
  answer: Answer | null,
  request: Req,
  isUncertain: boolean,
  failsCertainly: boolean,
  functions: Pick<OptionFunctions<Req>, 'isSuccess' | 'isCertainFailure'>,
): Judgement {
  if (failsCertainly) return { how: 'certainly', because: 'certain_failure' }
  if (answer === null) return { how: 'perhaps', because: 'no_answer' }
  if (functions.isSuccess(answer, request)) return 'success'
  if (isRefusalStatus(answer.status)) return { how: 'certainly', because: 'refused' }
  if (!isUncertain && functions.isCertainFailure(answer, request)) {
    return { how: 'certainly', because: 'judged_certain' }
  }
  return { how: 'perhaps', because: 'status' }
}
