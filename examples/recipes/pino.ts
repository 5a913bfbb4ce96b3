import type { IdempotencyEvent } from 'once-per-key'
import type { WebhookReceiverEvent } from 'once-per-key/receiver'
import type { RunnerEvent } from 'once-per-key/run'
import type { Logger } from 'pino'

type LoggedEvent = IdempotencyEvent | RunnerEvent | WebhookReceiverEvent

/** What somebody has to look at. Everything else is the normal course, at level `info`. */
const levels: Partial<Record<LoggedEvent['type'], 'warn' | 'error'>> = {
  handler_failed: 'error',
  receiver_failed: 'error',
  unprotected: 'error',
  evicted: 'error',
  eviction_policy: 'error',
  completion_given_up: 'error',
  transaction_not_committed: 'error',
  answer_dropped: 'error',
  result_not_kept: 'error',
  option_failed: 'error',
  store_failed: 'error',
  store_paused: 'error',
  connections_exhausted: 'warn',
  sweep_failed: 'warn',
  completion_pending: 'warn',
  step_pending: 'warn',
  lease_lost: 'warn',
  outcome_unknown: 'warn',
}

/** One line for each event of a middleware, a webhook receiver or a runner: its key, its scope and its error, and no bodies. */
export function logDecisions(logger: Logger): (event: LoggedEvent) => void {
  return (event) => {
    const { type, ...facts } = event
    const isUncertain = type === 'failed' && event.uncertain
    logger[levels[type] ?? (isUncertain ? 'warn' : 'info')](facts, type)
  }
}
