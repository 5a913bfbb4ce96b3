import { json } from 'node:stream/consumers'
import { context, metrics, trace } from '@opentelemetry/api'
import express from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { authenticate } from '../../../examples/recipes/merchant.js'
import { counted, served } from '../../../test/recipes/served.js'
import { listen } from '../../../test/support/bindings.js'
import { sendTelemetry } from '../../recipes/opentelemetry.js'

afterEach(() => {
  context.disable()
  metrics.disable()
  trace.disable()
})

/** What a collector is sent as OTLP in JSON, as far as this test reads it. */
interface Sent {
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string; readonly unit: string }[] }[]
  }[]
  readonly resourceSpans?: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly { readonly name: string }[] }[]
  }[]
}

/** Stands in for an OpenTelemetry collector. */
async function collector() {
  const sent: { readonly path: string; readonly body: Sent }[] = []
  const { port, close } = await listen(async (req, res) => {
    sent.push({ path: req.url ?? '', body: (await json(req)) as Sent })
    res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
  })
  onTestFinished(close)
  const to = (path: string) => sent.filter((one) => one.path === path).map(({ body }) => body)
  return { url: `http://127.0.0.1:${port}`, sent, to }
}

test('a collector receives the metrics and the spans of a payout and its retry', async () => {
  const { url, sent, to } = await collector()
  const flush = sendTelemetry(url)
  const once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })
  const app = express()
  app.post('/payouts', authenticate, express.json(), once, counted().handler)
  const { post } = await served(app)
  await post()
  expect(await post()).toMatchObject({ replayed: true })
  await flush()

  const measured = to('/v1/metrics')
    .flatMap(({ resourceMetrics = [] }) => resourceMetrics)
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics: each }) => each.map(({ name, unit }) => `${name} ${unit}`))
  expect(new Set(measured)).toEqual(
    new Set([
      'once_per_key.decisions {decision}',
      'once_per_key.active_runs {run}',
      'once_per_key.store.command.duration s',
      'once_per_key.events {event}',
      'once_per_key.lease.losses {loss}',
      'once_per_key.pending_completions {completion}',
      'once_per_key.unknown_outcomes {outcome}',
    ]),
  )
  const spans = to('/v1/traces')
    .flatMap(({ resourceSpans = [] }) => resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans: each }) => each.map(({ name }) => name))
  expect(spans).toEqual(['once-per-key begin', 'once-per-key complete', 'once-per-key begin'])
  expect(JSON.stringify(sent)).not.toMatch(/order-1|mer_acme/)
})
