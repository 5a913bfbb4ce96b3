import { createHmac } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
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
import { type ClaimTrace, type CommandTrace, type EventTrace, inItsWords, warnOnce } from '../core/index.js'

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
  readonly #hashesOf: ReturnType<typeof hasher>
  readonly #contexts = new WeakMap<ClaimTrace, Context>()
  readonly #commands = new WeakMap<CommandTrace, ActiveCommand>()
  readonly #runs = new Map<string, ActiveRun>()
  readonly #answeredBy = new AnsweredBy()

  constructor(meter: Meter, tracer: Tracer, hashSecret: string | undefined) {
    this.#metrics = createInstruments(meter)
    this.#tracer = tracer
    this.#hashesOf = hasher(hashSecret)
  }

  claimStarted(claim: ClaimTrace): void {
    this.#contexts.set(claim, context.active())
  }

  claimEnded(claim: ClaimTrace): void {
    const { runId = '', outcome, attempt, previousOutcome } = claim
    const at = this.#contexts.get(claim)
    if (at === undefined || outcome === undefined) return // It began before the subscription.
    const about = namespaceOf(claim)
    const decision = { ...about, ...outcomeOf(outcome, previousOutcome) }
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
      this.#runs.set(runId, { context: at, attributes: about, name: nameOf(claim), isPending: false })
      this.#metrics.activeRuns.add(1, about)
    } else if (outcome === 'replay') {
      const link = this.#answeredBy.linkTo(nameOf(claim))
      if (link !== undefined) span?.addLink(link)
    }
  }

  commandStarted(command: CommandTrace): void {
    const { runId } = command
    const attributes = {
      'once_per_key.command': command.command,
      ...namespaceOf(command),
      ...this.#hashesOf(command),
      ...(runId !== undefined && { 'once_per_key.run.id': runId }),
    }
    const span = this.#tracer.startSpan(`once-per-key ${command.command}`, { attributes }, this.#parentOf(command))
    this.#commands.set(command, { span, startedAt: performance.now() })
  }

  /** A renewal is sent by a timer that may have been set for another run, so its parent is the run's request. */
  #parentOf({ command, runId = '' }: CommandTrace): Context {
    const active = context.active()
    const run = this.#runs.get(runId)
    return run !== undefined && (command === 'renew' || trace.getSpan(active) === undefined) ? run.context : active
  }

  commandEnded(command: CommandTrace): void {
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

  happened({ event, runId = '' }: EventTrace): void {
    const run = this.#runs.get(runId)
    switch (event.type) {
      case 'bypassed':
        this.#passedOver('bypass')
        return
      case 'run_ended':
        if (run !== undefined) this.#ended(runId, run)
        return
      case 'rejected':
        this.#passedOver(event.code)
        break
      case 'lease_lost':
        this.#metrics.leaseLosses.add(1, { 'once_per_key.lease.reason': event.reason })
        break
      case 'completion_pending':
        if (run !== undefined) this.#pending(run)
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
    const type = { 'once_per_key.event.type': event.type }
    this.#metrics.events.add(1, type)
    if (leavesUnknown(event)) this.#metrics.unknownOutcomes.add(1, type)
  }

  #passedOver(outcome: string): void {
    const decision = outcomeOf(outcome)
    this.#metrics.decisions.add(1, decision)
    trace.getActiveSpan()?.setAttributes(decision)
  }

  #pending(run: ActiveRun): void {
    if (run.isPending) return
    run.isPending = true
    this.#metrics.pendingCompletions.add(1, run.attributes)
  }

  #ended(runId: string, run: ActiveRun): void {
    this.#runs.delete(runId)
    this.#metrics.activeRuns.add(-1, run.attributes)
    if (run.isPending) this.#metrics.pendingCompletions.add(-1, run.attributes)
  }

  /** Removes the runs in progress, because their ends will not be received. */
  stop(): void {
    for (const [runId, run] of this.#runs) this.#ended(runId, run)
  }
}

function outcomeOf(outcome: string, previousOutcome?: string): Attributes {
  return {
    'once_per_key.outcome': outcome,
    ...(previousOutcome !== undefined && { 'once_per_key.previous_outcome': previousOutcome }),
  }
}

function namespaceOf({ namespace }: ClaimTrace | CommandTrace): Attributes {
  return namespace === undefined ? {} : { 'once_per_key.namespace': namespace }
}

function nameOf({ namespace, scope, key }: ClaimTrace): string {
  return JSON.stringify([namespace, scope, key])
}

/** When it happens, or when the next request finds it: a process that dies publishes nothing. */
function leavesUnknown(event: EventTrace['event']): boolean {
  switch (event.type) {
    case 'failed':
      return event.uncertain
    case 'claimed':
      return event.previousOutcome === 'unknown'
    case 'outcome_unknown':
    case 'completion_given_up':
    case 'transaction_not_committed':
      return true
    default:
      return false
  }
}

/** Scope and key as hashed attributes; none without a secret. */
function hasher(secret: string | undefined): (about: { readonly scope: string; readonly key: string }) => Attributes {
  if (secret === undefined) return () => ({})
  const hash = (text: string): string => createHmac('sha256', secret).update(text).digest('hex')
  return ({ scope, key }) => ({ 'once_per_key.scope.hash': hash(scope), 'once_per_key.key.hash': hash(key) })
}

const MOST_RUNS = 1_000
/** Clients retry within minutes. */
const LONGEST_MS = 3_600_000

/** The trace that made the answer of a key: only for recent runs of this process, because records do not contain it. */
class AnsweredBy {
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

/** Subscribes it to everything that the engines of the process publish. Returns a function that unsubscribes it. */
export function listen(telemetry: Telemetry): () => void {
  const claimEnded = whenKnown((claim: ClaimTrace) => telemetry.claimEnded(claim))
  const commandEnded = whenKnown((command: CommandTrace) => telemetry.commandEnded(command))
  const heard: readonly (readonly [channel: string, hear: (message: unknown) => void])[] = [
    ['tracing:once-per-key:claim:start', (message) => telemetry.claimStarted(message as ClaimTrace)],
    ['tracing:once-per-key:claim:end', claimEnded],
    ['tracing:once-per-key:claim:asyncEnd', claimEnded],
    ['tracing:once-per-key:command:start', (message) => telemetry.commandStarted(message as CommandTrace)],
    ['tracing:once-per-key:command:end', commandEnded],
    ['tracing:once-per-key:command:asyncEnd', commandEnded],
    ['once-per-key:event', (message) => telemetry.happened(message as EventTrace)],
  ]
  const ends = heard.map(([channel, hear]) => {
    const harmless = withoutThrow(hear)
    subscribe(channel, harmless)
    return () => unsubscribe(channel, harmless)
  })
  return () => {
    for (const end of ends) end()
  }
}

/** A processor of spans or a sampler may throw. A channel passes that on as an uncaught exception, which ends the process and its runs. */
function withoutThrow(hear: (message: unknown) => void): (message: unknown) => void {
  return (message) => {
    try {
      hear(message)
    } catch (error) {
      warnOnce(
        'ONCE_PER_KEY_TELEMETRY_FAILED',
        `OpenTelemetry failed${inItsWords(error)}. The operation goes on, and is not measured in full: look at the processors and samplers ` +
          'of the providers that instrument() uses. This is printed once.',
      )
    }
  }
}

/** If the result is asynchronous, it is not known at `end` yet: `asyncEnd` follows. */
function whenKnown<Message extends { readonly outcome?: string }>(hear: (message: Message) => void) {
  return (message: unknown): void => {
    if ((message as Message).outcome !== undefined) hear(message as Message)
  }
}
