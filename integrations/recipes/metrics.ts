import type { IdempotencyEvent } from 'once-per-key'
import { Counter, type Registry } from 'prom-client'

/** Counts what happens. Scopes and keys are never labels: each would be a time series of its own. */
export function countDecisions(registry: Registry): (event: IdempotencyEvent) => void {
  const decisions = new Counter({
    name: 'idempotency_decisions_total',
    help: 'What the idempotency middleware decided and met, by type.',
    labelNames: ['type', 'detail'],
    registers: [registry],
  })
  // A series that begins at 1 shows no increase: what alerts watch begins at 0.
  for (const [type, details] of Object.entries(WATCHED)) {
    for (const detail of details) decisions.inc({ type, detail }, 0)
  }
  return (event) => decisions.inc({ type: event.type, detail: detailOf(event) })
}

/** What alerts watch, with its details. */
const WATCHED: Partial<Record<IdempotencyEvent['type'], readonly string[]>> = {
  claimed: ['unknown'],
  failed: ['uncertain'],
  lease_lost: ['lapsed', 'taken'],
  store_failed: ['begin', 'renew', 'complete', 'release', 'step', 'inspect', 'look', 'fence', 'withhold'],
  option_failed: ['renderProblem', 'isSuccess', 'isCertainFailure', 'keepFailure', 'keepHeader', 'streams'],
  unprotected: [''],
  evicted: [''],
  eviction_policy: [''],
  answer_dropped: [''],
  completion_pending: [''],
  completion_given_up: [''],
  transaction_not_committed: [''],
  outcome_unknown: [''],
  store_paused: [''],
  connections_exhausted: [''],
  sweep_failed: [''],
  mismatched: [''],
}

/** One of a few words. */
function detailOf(event: IdempotencyEvent): string {
  switch (event.type) {
    case 'claimed':
      return event.previousOutcome
    case 'failed':
      return event.uncertain ? 'uncertain' : 'certain'
    case 'resolved':
      return event.as
    case 'rejected':
      return event.code
    case 'lease_lost':
      return event.reason
    case 'store_failed':
      return event.command
    case 'option_failed':
      return event.option
    default:
      return ''
  }
}
