import type { Counter, Histogram, Meter, UpDownCounter } from '@opentelemetry/api'

/** The metrics. Their names and units are a contract: dashboards use them. */
export interface Instruments {
  readonly decisions: Counter
  readonly activeRuns: UpDownCounter
  readonly commandDuration: Histogram
  readonly leaseLosses: Counter
  readonly pendingCompletions: UpDownCounter
  readonly unknownOutcomes: Counter
  readonly events: Counter
}

export function createInstruments(meter: Meter): Instruments {
  return {
    decisions: meter.createCounter('once_per_key.decisions', {
      description: 'Decisions about operations, by outcome: run, replay, or the reason for the refusal.',
      unit: '{decision}',
    }),
    activeRuns: meter.createUpDownCounter('once_per_key.active_runs', {
      description: 'Active runs: from the claim until the record is final.',
      unit: '{run}',
    }),
    commandDuration: meter.createHistogram('once_per_key.store.command.duration', {
      description: 'Duration of store commands, until the reply, the failure or the time limit.',
      unit: 's',
      advice: { explicitBucketBoundaries: BOUNDARIES },
    }),
    leaseLosses: meter.createCounter('once_per_key.lease.losses', {
      description: 'Leases that their owners lost.',
      unit: '{loss}',
    }),
    pendingCompletions: meter.createUpDownCounter('once_per_key.pending_completions', {
      description: 'Successes that the store has not confirmed in time, and that are retried.',
      unit: '{completion}',
    }),
    unknownOutcomes: meter.createCounter('once_per_key.unknown_outcomes', {
      description: 'Outcomes that became unknown, or were found to be unknown.',
      unit: '{outcome}',
    }),
    events: meter.createCounter('once_per_key.events', {
      description: 'Events, by type.',
      unit: '{event}',
    }),
  }
}

/** In seconds. Semantic conventions, db.client.operation.duration: "SHOULD be specified with ExplicitBucketBoundaries of […]". */
const BOUNDARIES = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]
