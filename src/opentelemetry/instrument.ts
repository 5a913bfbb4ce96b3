import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { MeterProvider, TracerProvider } from '@opentelemetry/api'
// As a namespace: without `metrics`, an old version is refused here, and not by Node, which would name no version.
import * as opentelemetry from '@opentelemetry/api'
import {
  type ClaimTrace,
  type CommandTrace,
  describeCause,
  describeKind,
  type EventTrace,
  IdempotencyError,
  type OptionTable,
  resolveOptions,
  warnOnce,
} from '../core/index.js'
import { Telemetry } from './telemetry.js'

export interface InstrumentOptions {
  /**
   * The provider of metrics.
   *
   * @default the global one at the time of the call, so call `instrument` after the SDK was started
   */
  readonly meterProvider?: MeterProvider | undefined
  /**
   * The provider of spans.
   *
   * @default the global one
   */
  readonly tracerProvider?: TracerProvider | undefined
  /**
   * Adds scope and key to spans, as their HMAC-SHA-256 with this secret, in hexadecimal: `once_per_key.scope.hash` and
   * `once_per_key.key.hash`. At least 16 characters.
   * @default none: neither scope nor key leaves the process
   */
  readonly hashSecret?: string | undefined
}

/**
 * Sends metrics and traces of every engine of this process (middleware of any framework, webhook receivers, runners) to
 * OpenTelemetry, from Node's diagnostics channels. Call it once, at start; it also covers engines that were created
 * before. Every series begins at zero. Returns a function that stops it and removes its runs from the metric of active runs.
 *
 * Metrics never contain scopes or keys; spans contain them only hashed, and only with `hashSecret`. No span contains an
 * error's message.
 *
 * @example
 * const stop = instrument({ meterProvider, tracerProvider })
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was started.
 */
export function instrument(options: InstrumentOptions = {}): () => void {
  if (opentelemetry.metrics === undefined) throw metricsMissingError()
  const {
    meterProvider = opentelemetry.metrics,
    tracerProvider = opentelemetry.trace,
    hashSecret,
  } = resolveOptions<InstrumentOptions>('instrument()', options, OPTIONS)
  const telemetry = new Telemetry(meterProvider.getMeter(NAME), tracerProvider.getTracer(NAME), hashSecret)
  const unsubscribe = listen(telemetry)
  let isStopped = false
  return () => {
    if (isStopped) return
    isStopped = true
    unsubscribe()
    telemetry.stop()
  }
}

function metricsMissingError(): IdempotencyError {
  return new IdempotencyError(
    'options_invalid',
    'instrument() needs @opentelemetry/api 1.3 or later, and found an older one, which has no metrics: npm install @opentelemetry/api@latest.',
  )
}

const NAME = 'once-per-key'
const LEAST_CHARACTERS = 16

const OPTIONS: OptionTable<InstrumentOptions> = {
  meterProvider: (value) => (has(value, 'getMeter') ? null : 'a MeterProvider'),
  tracerProvider: (value) => (has(value, 'getTracer') ? null : 'a TracerProvider'),
  hashSecret: (value) => {
    const expected = `a string of at least ${LEAST_CHARACTERS} characters`
    if (typeof value !== 'string') return { expected, seen: describeKind(value) }
    return value.length >= LEAST_CHARACTERS ? null : { expected, seen: `one of ${value.length}` }
  },
}

function has(value: unknown, method: string): boolean {
  return typeof (value as Record<string, unknown> | null)?.[method] === 'function'
}

/** Subscribes it to everything that the engines of the process publish. Returns a function that unsubscribes it. */
function listen(telemetry: Telemetry): () => void {
  const claimEnded = createOutcomeListener((claim: ClaimTrace) => telemetry.onClaimEnd(claim))
  const commandEnded = createOutcomeListener((command: CommandTrace) => telemetry.onCommandEnd(command))
  const heard: readonly (readonly [channel: string, hear: (message: unknown) => void])[] = [
    ['tracing:once-per-key:claim:start', (message) => telemetry.onClaimStart(message as ClaimTrace)],
    ['tracing:once-per-key:claim:end', claimEnded],
    ['tracing:once-per-key:claim:asyncEnd', claimEnded],
    ['tracing:once-per-key:command:start', (message) => telemetry.onCommandStart(message as CommandTrace)],
    ['tracing:once-per-key:command:end', commandEnded],
    ['tracing:once-per-key:command:asyncEnd', commandEnded],
    ['once-per-key:event', (message) => telemetry.onEvent(message as EventTrace)],
  ]
  const ends = heard.map(([channel, hear]) => {
    const harmless = createSafeListener(hear)
    subscribe(channel, harmless)
    return () => unsubscribe(channel, harmless)
  })
  return () => {
    for (const end of ends) end()
  }
}

/** A processor of spans or a sampler may throw. A channel passes that on as an uncaught exception, which ends the process and its runs. */
function createSafeListener(hear: (message: unknown) => void): (message: unknown) => void {
  return (message) => {
    try {
      hear(message)
    } catch (error) {
      warnOnce(
        'ONCE_PER_KEY_TELEMETRY_FAILED',
        `OpenTelemetry failed${describeCause(error)}. The operation goes on, and is not measured in full: look at the processors and samplers ` +
          'of the providers that instrument() uses. This is printed once.',
      )
    }
  }
}

/** If the result is asynchronous, it is not known at `end` yet: `asyncEnd` follows. */
function createOutcomeListener<Message extends { readonly outcome?: string }>(hear: (message: Message) => void) {
  return (message: unknown): void => {
    if ((message as Message).outcome !== undefined) hear(message as Message)
  }
}
