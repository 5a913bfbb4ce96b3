import type { IdempotencyEvent } from 'once-per-key'
import type { Logger } from 'pino'

type Level = 'info' | 'warn' | 'error'

/** What somebody has to look at; all else is the normal course. */
const levels: Partial<Record<IdempotencyEvent['type'], Level>> = {
  unprotected: 'error',
  evicted: 'error',
  eviction_policy: 'error',
  completion_given_up: 'error',
  transaction_not_committed: 'error',
  answer_dropped: 'error',
  option_failed: 'error',
  store_paused: 'error',
  store_failed: 'warn',
  connections_exhausted: 'warn',
  sweep_failed: 'warn',
  completion_pending: 'warn',
  lease_lost: 'warn',
  outcome_unknown: 'warn',
}

/** One line for each decision. Events hold the key and its scope, and no bodies. */
export function logDecisions(logger: Logger): (event: IdempotencyEvent) => void {
  return ({ type, ...facts }) => logger[levels[type] ?? 'info'](facts, type)
}
