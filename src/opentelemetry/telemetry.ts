import { createHmac } from 'node:crypto'
import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Meter,
  type Span,
  type SpanContext,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { LRUCache } from 'lru-cache'
import type { ClaimTrace, CommandTrace, EventTrace, PreviousOutcome, TracedEvent } from '../core/index.js'

interface ActiveRun {
  /** The context of its claim: the request's span is the active one. */
  readonly context: Context
  readonly attributes: Attributes
  readonly name: string
  isPending: boolean
}

interface ActiveCommand {
  readonly span: Span
  readonly startedAt: number
}

export class Telemetry {
  readonly #metrics: ReturnType<typeof createInstruments>
  readonly #tracer: Tracer
  readonly #hashesOf: ReturnType<typeof createAttributeHasher>
  readonly #contexts = new WeakMap<ClaimTrace, Context>()
  readonly #commands = new WeakMap<CommandTrace, ActiveCommand>()
  readonly #runs = new Map<string, ActiveRun>()
  readonly #answeredBy = new AnswerTraces()
  /** Whose series have begun. */
  readonly #namespaces = new Set<string | undefined>()

  constructor(meter: Meter, tracer: Tracer, hashSecret: string | undefined) {
    this.#metrics = createInstruments(meter)
    this.#tracer = tracer
    this.#hashesOf = createAttributeHasher(hashSecret)
    this.#beginSeries()
  }

  /** All series at zero: one that begins with its first event shows no increase, and an alert on it would miss that event. */
  #beginSeries(): void {
    const { decisions, events, unknownOutcomes, leaseLosses } = this.#metrics
    for (const outcome of PASSED_OVER) decisions.add(0, toOutcomeAttributes(outcome))
    for (const reason of LEASE_REASONS) leaseLosses.add(0, { 'once_per_key.lease.reason': reason })
    for (const type of Object.keys(EVENT_TYPES)) events.add(0, toEventAttributes(type))
    for (const type of Object.keys(LEAVES_UNKNOWN)) unknownOutcomes.add(0, toEventAttributes(type))
    this.#beginNamespaceSeries({})
  }

  /** A namespace is known from its first claim on. */
  #beginNamespaceSeries(about: Attributes): void {
    const { decisions, activeRuns, pendingCompletions } = this.#metrics
    for (const [outcome, previousOutcomes] of Object.entries(CLAIM_OUTCOMES)) {
      for (const previous of previousOutcomes) decisions.add(0, { ...about, ...toOutcomeAttributes(outcome, previous) })
    }
    activeRuns.add(0, about)
    pendingCompletions.add(0, about)
    this.#namespaces.add(about['once_per_key.namespace'] as string | undefined)
  }

  onClaimStart(claim: ClaimTrace): void {
    this.#contexts.set(claim, context.active())
  }

  onClaimEnd(claim: ClaimTrace): void {
    const { runId = '', outcome, attempt, previousOutcome } = claim
    const at = this.#contexts.get(claim)
    if (at === undefined || outcome === undefined) return // It began before the subscription.
    const about = toNamespaceAttributes(claim)
    if (!this.#namespaces.has(claim.namespace)) this.#beginNamespaceSeries(about)
    const decision = { ...about, ...toOutcomeAttributes(outcome, previousOutcome) }
    this.#metrics.decisions.add(1, decision)

    const runs = outcome === 'run' || outcome === 'unprotected'
    const span = trace.getSpan(at)
    span?.setAttributes({
      ...decision,
      ...this.#hashesOf(claim),
      ...(runs && { 'once_per_key.run.id': runId }),
      ...(attempt !== undefined && { 'once_per_key.attempt': attempt }),
    })
    if (runs) {
      this.#runs.set(runId, { context: at, attributes: about, name: encodeRecordName(claim), isPending: false })
      this.#metrics.activeRuns.add(1, about)
    } else if (outcome === 'replay') {
      const link = this.#answeredBy.linkTo(encodeRecordName(claim))
      if (link !== undefined) span?.addLink(link)
    }
  }

  onCommandStart(command: CommandTrace): void {
    const { runId } = command
    const attributes = {
      'once_per_key.command': command.command,
      ...toNamespaceAttributes(command),
      ...this.#hashesOf(command),
      ...(runId !== undefined && { 'once_per_key.run.id': runId }),
    }
    const span = this.#tracer.startSpan(`once-per-key ${command.command}`, { attributes }, this.#findParent(command))
    this.#commands.set(command, { span, startedAt: performance.now() })
  }

  /** A renewal is sent by a timer that may have been set for another run, so its parent is the run's request. */
  #findParent({ command, runId = '' }: CommandTrace): Context {
    const active = context.active()
    const run = this.#runs.get(runId)
    return run !== undefined && (command === 'renew' || trace.getSpan(active) === undefined) ? run.context : active
  }

  onCommandEnd(command: CommandTrace): void {
    const started = this.#commands.get(command)
    const { outcome, attempt, error } = command
    if (started === undefined || outcome === undefined) return
    const { span, startedAt } = started
    const how = {
      'once_per_key.command.outcome': outcome,
      ...(error !== undefined && { 'error.type': error.code ?? error.name }),
    }
    const seconds = (performance.now() - startedAt) / 1_000
    this.#metrics.commandDuration.record(seconds, { 'once_per_key.command': command.command, ...how })
    span.setAttributes({ ...how, ...(attempt !== undefined && { 'once_per_key.attempt': attempt }) })
    if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
  }

  onEvent({ event, runId = '' }: EventTrace): void {
    const run = this.#runs.get(runId)
    switch (event.type) {
      case 'bypassed':
        this.#recordUnclaimedOutcome('bypass')
        return
      case 'run_ended':
        if (run !== undefined) this.#onRunEnd(runId, run)
        return
      case 'rejected':
        this.#recordUnclaimedOutcome(event.code)
        break
      case 'lease_lost':
        this.#metrics.leaseLosses.add(1, { 'once_per_key.lease.reason': event.reason })
        break
      case 'completion_pending':
        if (run !== undefined) this.#onCompletionPending(run)
        break
      case 'step_done':
      case 'step_resumed':
      case 'step_pending':
        if (run !== undefined)
          trace.getSpan(run.context)?.addEvent(`once_per_key.${event.type}`, { 'once_per_key.step.label': event.label })
        break
      case 'completed':
        if (run !== undefined) this.#answeredBy.set(run.name, trace.getSpanContext(run.context))
    }
    const type = toEventAttributes(event.type)
    this.#metrics.events.add(1, type)
    if (hasUnknownOutcome(event)) this.#metrics.unknownOutcomes.add(1, type)
  }

  #recordUnclaimedOutcome(outcome: string): void {
    const decision = toOutcomeAttributes(outcome)
    this.#metrics.decisions.add(1, decision)
    trace.getActiveSpan()?.setAttributes(decision)
  }

  #onCompletionPending(run: ActiveRun): void {
    if (run.isPending) return
    run.isPending = true
    this.#metrics.pendingCompletions.add(1, run.attributes)
  }

  #onRunEnd(runId: string, run: ActiveRun): void {
    this.#runs.delete(runId)
    this.#metrics.activeRuns.add(-1, run.attributes)
    if (run.isPending) this.#metrics.pendingCompletions.add(-1, run.attributes)
  }

  /** Removes the runs in progress, because their ends will not be received. */
  stop(): void {
    for (const [runId, run] of this.#runs) this.#onRunEnd(runId, run)
  }
}

function toOutcomeAttributes(outcome: string, previousOutcome?: string): Attributes {
  return {
    'once_per_key.outcome': outcome,
    ...(previousOutcome !== undefined && { 'once_per_key.previous_outcome': previousOutcome }),
  }
}

function toEventAttributes(type: string): Attributes {
  return { 'once_per_key.event.type': type }
}

function toNamespaceAttributes({ namespace }: ClaimTrace | CommandTrace): Attributes {
  return namespace === undefined ? {} : { 'once_per_key.namespace': namespace }
}

function encodeRecordName({ namespace, scope, key }: ClaimTrace): string {
  return JSON.stringify([namespace, scope, key])
}

type TracedEventOf<Type extends TracedEvent['type']> = Extract<TracedEvent, { readonly type: Type }>

/** When it happens, or when the next request finds it: a process that dies publishes nothing. */
const LEAVES_UNKNOWN = {
  failed: ({ uncertain }: TracedEventOf<'failed'>) => uncertain,
  claimed: ({ previousOutcome }: TracedEventOf<'claimed'>) => previousOutcome === 'unknown',
  outcome_unknown: () => true,
  completion_given_up: () => true,
  transaction_not_committed: () => true,
}

function hasUnknownOutcome(event: TracedEvent): boolean {
  const { [event.type]: isOne } = LEAVES_UNKNOWN as Partial<
    Record<TracedEvent['type'], (event: TracedEvent) => boolean>
  >
  return isOne?.(event) === true
}

/** The outcomes of a claim, each with what a run may be told of earlier attempts. */
const CLAIM_OUTCOMES: Readonly<Record<Required<ClaimTrace>['outcome'], readonly (PreviousOutcome | undefined)[]>> = {
  run: ['none', 'failed', 'unknown'],
  unprotected: ['unknown'],
  replay: [undefined],
  in_flight: [undefined],
  mismatched: [undefined],
  answer_not_kept: [undefined],
  outcome_unknown: [undefined],
  key_expired: [undefined],
  store_unavailable: [undefined],
  transaction_missing: [undefined],
}

/** The outcomes of requests that claim nothing. A test holds that these are all. */
const PASSED_OVER = [
  'bypass',
  'key_missing',
  'key_invalid',
  'body_too_deep',
  'body_malformed',
  'body_too_large',
  'content_type_unsupported',
]

const LEASE_REASONS: readonly TracedEventOf<'lease_lost'>['reason'][] = ['lapsed', 'taken']

/** The events that are counted. */
const EVENT_TYPES: Readonly<Record<Exclude<TracedEvent['type'], 'bypassed' | 'run_ended'>, true>> = {
  claimed: true,
  completed: true,
  failed: true,
  step_done: true,
  step_resumed: true,
  step_pending: true,
  replayed: true,
  resolved: true,
  in_flight: true,
  mismatched: true,
  answer_not_kept: true,
  outcome_unknown: true,
  key_expired: true,
  rejected: true,
  lease_lost: true,
  store_failed: true,
  store_paused: true,
  unprotected: true,
  completion_pending: true,
  completion_given_up: true,
  transaction_not_committed: true,
  option_failed: true,
  evicted: true,
  eviction_policy: true,
  answer_dropped: true,
  connections_exhausted: true,
  sweep_failed: true,
}

/** Scope and key as hashed attributes; none without a secret. */
function createAttributeHasher(
  secret: string | undefined,
): (about: { readonly scope: string; readonly key: string }) => Attributes {
  if (secret === undefined) return () => ({})
  const hash = (text: string): string => createHmac('sha256', secret).update(text).digest('hex')
  return ({ scope, key }) => ({ 'once_per_key.scope.hash': hash(scope), 'once_per_key.key.hash': hash(key) })
}

const MOST_RUNS = 1_000
/** Clients retry within minutes. */
const LONGEST_MS = 3_600_000

/** The trace that made the answer of a key: only for recent runs of this process, because records do not contain it. */
class AnswerTraces {
  readonly #traces = new LRUCache<string, SpanContext>({ max: MOST_RUNS, ttl: LONGEST_MS })

  set(name: string, made: SpanContext | undefined): void {
    if (made === undefined) this.#traces.delete(name)
    else this.#traces.set(name, made)
  }

  linkTo(name: string): Link | undefined {
    const made = this.#traces.get(name)
    return made === undefined ? undefined : { context: made }
  }
}

/** The names and units are a contract: dashboards use them. */
function createInstruments(meter: Meter) {
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
