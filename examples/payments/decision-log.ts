import type { IdempotencyEvent } from 'once-per-key'
import type { Logger } from 'pino'

/** One line a decision. Events hold no bodies and no API keys. */
export function decisionLog(logger: Logger, isStoreAway: () => boolean): (event: IdempotencyEvent) => void {
  let policyWasTold = false

  return (event) => {
    const { type, ...facts } = event
    switch (type) {
      case 'store_failed':
        // A claim that fails is a request refused. The rest is tried again until the store is back: no line for each try.
        return event.command !== 'begin' && isStoreAway() ? logger.debug(facts, type) : logger.error(facts, type)
      case 'option_failed':
      case 'completion_given_up':
      case 'transaction_not_committed':
      case 'answer_dropped':
      case 'store_paused':
        return logger.error(facts, type)
      case 'eviction_policy':
        // Each middleware on the store is told.
        if (!policyWasTold) logger.warn(facts, type)
        policyWasTold = true
        return
      case 'lease_lost':
      case 'unprotected':
      case 'completion_pending':
      case 'evicted':
        return logger.warn(facts, type)
      default:
        return logger.info(facts, type)
    }
  }
}
