import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api'
import { checkOptions, kindOf, type OptionRule } from '../core/index.js'
import { listen, Telemetry } from './telemetry.js'

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
 * before. Returns a function that stops it and removes its runs from the metric of active runs.
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
  checkOptions('instrument()', options, options, RULES)
  const { meterProvider = metrics, tracerProvider = trace, hashSecret } = options
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

const NAME = 'once-per-key'
const LEAST_CHARACTERS = 16

const RULES: Readonly<Record<string, OptionRule>> = {
  meterProvider: (value) => (has(value, 'getMeter') ? null : 'a MeterProvider'),
  tracerProvider: (value) => (has(value, 'getTracer') ? null : 'a TracerProvider'),
  hashSecret: (value) => {
    const expected = `a string of at least ${LEAST_CHARACTERS} characters`
    if (typeof value !== 'string') return { expected, seen: kindOf(value) }
    return value.length >= LEAST_CHARACTERS ? null : { expected, seen: `one of ${value.length}` }
  },
}

function has(value: unknown, method: string): boolean {
  return typeof (value as Record<string, unknown> | null)?.[method] === 'function'
}
