import type { IdempotencyEvent } from 'once-per-key'
import type { Logger } from 'pino'

/** One line a decision. Events hold no bodies and no API keys. */
export function decisionLog(logger: Logger): (event: IdempotencyEvent) => void {
  return (event) => {
    const { type, ...facts } = event
    switch (type) {
      case 'store_failed':
      case 'option_failed':
      case 'completion_given_up':
        return logger.error(facts, type)
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
