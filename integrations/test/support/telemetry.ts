import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { type InstrumentOptions, instrument } from 'once-per-key/opentelemetry'
import { onTestFinished } from 'vitest'

const LONG_MS = 2 ** 31 - 1

/** OpenTelemetry's SDK with its exporters in memory, instrumented until the test is over. */
export function telemetry(options: InstrumentOptions = {}) {
  const spans = new InMemorySpanExporter()
  const tracerProvider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: LONG_MS })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const stop = instrument({ meterProvider, tracerProvider, ...options })
  onTestFinished(async () => {
    stop()
    await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()])
  })

  async function metrics() {
    const { resourceMetrics, errors } = await reader.collect()
    if (errors.length > 0) throw errors[0]
    return resourceMetrics.scopeMetrics.flatMap(({ metrics: measured }) => measured)
  }

  /** The points of a metric, as its attributes and value, in the order of their names; of a counter only those that have counted. */
  async function points(name: string): Promise<[string, unknown][]> {
    const metric = (await metrics()).find(({ descriptor }) => descriptor.name === name)
    const found = (metric?.dataPoints ?? []).map(({ attributes, value }): [string, unknown] => [
      Object.entries(attributes)
        .map(([attribute, said]) => `${attribute.replace('once_per_key.', '')}=${said}`)
        .join(' '),
      typeof value === 'number' ? value : (value as { count: number }).count,
    ])
    const isCounter = metric?.dataPointType === DataPointType.SUM && metric.isMonotonic
    return found.filter(([, value]) => !isCounter || value !== 0).sort(([a], [b]) => a.localeCompare(b))
  }

  return { stop, metrics, points, tracer: tracerProvider.getTracer('test'), spans: () => spans.getFinishedSpans() }
}
