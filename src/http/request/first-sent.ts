import { IdempotencyError, inItsWords, kindOf } from '../../core/errors.js'
import { ignoreRejection } from '../../core/maybe-promise.js'
import { ENGINE_DEFAULTS } from '../../core/options/engine-options.js'
import { firstSentFault } from '../../core/record/identity.js'

/** When it was first sent; `fault`: what is wrong with what the client says. */
export type FirstSentReading = { readonly firstSent: Date | undefined } | { readonly fault: string }

/**
 * Returns a reader of the time at which a request was first sent, by an application's option.
 *
 * The reader throws IdempotencyError `first_sent_failed`: nothing ran and nothing was stored.
 */
export function firstSentReader<Req>(
  firstSent: (request: Req) => Date | undefined,
  clockSkewMs: number = ENGINE_DEFAULTS.clockSkewMs,
): (request: Req) => FirstSentReading {
  return (request) => {
    let given: unknown
    try {
      given = firstSent(request)
    } catch (cause) {
      throw failed(`failed${inItsWords(cause)}`, cause)
    }
    if (given === undefined) return { firstSent: undefined }
    if (!(given instanceof Date)) {
      ignoreRejection(given)
      throw failed(`returned ${kindOf(given)}`)
    }
    const fault = firstSentFault(given, clockSkewMs)
    return fault === null ? { firstSent: given } : { fault }
  }
}

function failed(what: string, cause?: unknown): IdempotencyError {
  return new IdempotencyError(
    'first_sent_failed',
    `firstSent() ${what}. It must return a Date, or undefined if it is unknown when the operation was first sent; an invalid ` +
      'date refuses the request.',
    { cause },
  )
}
