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
  return (event) => decisions.inc({ type: event.type, detail: detailOf(event) })
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
