import { NodeTracerProvider, type Sampler, SamplingDecision, type SpanProcessor } from '@opentelemetry/sdk-trace-node'
import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { expect, test, vi } from 'vitest'
import { heardWarnings } from '../../../test/support/warnings.js'
import { telemetry } from '../support/telemetry.js'

const fails = (): never => {
  throw new Error('a rule has failed')
}
const processor = (own: Partial<SpanProcessor>): SpanProcessor => ({
  onStart() {},
  onEnd() {},
  shutdown: async () => {},
  forceFlush: async () => {},
  ...own,
})
const sampling = (shouldSample: Sampler['shouldSample']): Sampler => ({ shouldSample, toString: () => 'on trial' })
const always = sampling(() => ({ decision: SamplingDecision.RECORD_AND_SAMPLED }))

test('a processor or a sampler that throws changes no run, and ends no process: it is warned of once', async () => {
  const warnings = heardWarnings()
  for (const [sampler, own] of [
    [always, { onStart: fails }],
    [always, { onEnd: fails }],
    [sampling(fails), {}],
  ] as const) {
    telemetry({ tracerProvider: new NodeTracerProvider({ sampler, spanProcessors: [processor(own)] }) })
  }
  const once = runner({ store: new MemoryStore(), name: 'payouts' })
  const work = vi.fn(() => 'paid')
  const operation = { scope: 'acme', key: 'k', input: null }
  expect([await once(operation, work), await once(operation, work)]).toEqual(['paid', 'paid'])
  expect(work).toHaveBeenCalledTimes(1)
  await expect.poll(() => warnings.length).toBeGreaterThan(0)
  expect(warnings).toEqual([
    {
      code: 'ONCE_PER_KEY_TELEMETRY_FAILED',
      message: expect.stringContaining('OpenTelemetry failed: a rule has failed.'),
    },
  ])
})
