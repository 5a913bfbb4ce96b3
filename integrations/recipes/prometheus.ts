import type { RequestListener } from 'node:http'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { instrument } from 'once-per-key/opentelemetry'

/**
 * What Prometheus scrapes, as a handler: `app.get('/metrics', scrape)`. Call it at start, before the first request, and call `stop` at
 * shutdown.
 */
export function prometheusMetrics(): { scrape: RequestListener; stop(): Promise<void> } {
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const meterProvider = new MeterProvider({ readers: [exporter] })
  const stopInstrument = instrument({ meterProvider })
  return {
    scrape: (req, res) => exporter.getMetricsRequestHandler(req, res),
    async stop() {
      stopInstrument()
      await meterProvider.shutdown()
    },
  }
}
