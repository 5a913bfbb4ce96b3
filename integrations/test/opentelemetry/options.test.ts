import { metrics, trace } from '@opentelemetry/api'
import { InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { createOperationEngine } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { instrument } from 'once-per-key/opentelemetry'
import { afterEach, expect, test } from 'vitest'

afterEach(() => {
  metrics.disable()
  trace.disable()
})

test('without providers the global ones are used, and an engine that was made before is heard', async () => {
  const engine = createOperationEngine({ store: new MemoryStore() })
  const spans = new InMemorySpanExporter()
  trace.setGlobalTracerProvider(new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }))
  const reader = new PeriodicExportingMetricReader({ exporter: new InMemoryMetricExporter(1) })
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
  const stop = instrument()
  void engine.claim({ scope: 'acme', key: 'order-1', fingerprint: 'f' })
  stop()
  void engine.claim({ scope: 'acme', key: 'order-2', fingerprint: 'f' })
  expect(spans.getFinishedSpans()).toHaveLength(1)
  const { resourceMetrics } = await reader.collect()
  expect(resourceMetrics.scopeMetrics.map(({ scope }) => scope.name)).toEqual(['once-per-key'])
  await reader.shutdown()
})

test('without an SDK nothing happens', () => {
  const engine = createOperationEngine({ store: new MemoryStore() })
  const stop = instrument()
  expect(engine.claim({ scope: 'acme', key: 'order-1', fingerprint: 'f' })).toMatchObject({ action: 'execute' })
  stop()
})

test('mistakes are listed, and the secret is in none', () => {
  const wrong = { meterProvider: {}, tracerProvider: null, hashSecret: 'too short', hashSecrte: 'x' }
  expect(() => instrument(wrong as never)).toThrow(
    [
      'The options of instrument() are invalid:',
      '  - hashSecrte: did you mean hashSecret?',
      '  - meterProvider: expected a MeterProvider; seen: an object (Object)',
      '  - tracerProvider: expected a TracerProvider; seen: null',
      '  - hashSecret: expected a string of at least 16 characters; seen: one of 9',
    ].join('\n'),
  )
  expect(() => instrument({ hashSecret: 7 as never })).toThrow('seen: a number')
})
