import { metrics } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { instrument } from 'once-per-key/opentelemetry'

/**
 * Sends metrics and traces to a collector, such as `http://127.0.0.1:4318`. Call it at start; call what it returns at shutdown,
 * when the last request has ended.
 */
export function sendTelemetry(collector: string): () => Promise<void> {
  const spans = new OTLPTraceExporter({ url: `${collector}/v1/traces` })
  const tracerProvider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(spans)] })
  tracerProvider.register()

  const exporter = new OTLPMetricExporter({ url: `${collector}/v1/metrics` })
  const meterProvider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] })
  metrics.setGlobalMeterProvider(meterProvider)

  const stop = instrument()
  return async () => {
    stop()
    await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]) // They send what is left.
  }
}
