import { DataPointType, type MetricData } from '@opentelemetry/sdk-metrics'
import { createOperationEngine } from 'once-per-key/core'
import { problemCatalogue } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, type Options, TIMES } from '../../../test/support/engine-on-trial.js'
import { failBefore, hang } from '../../../test/support/faults.js'
import { answer, type Request } from '../../../test/support/request-facts.js'
import { telemetry } from '../support/telemetry.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('the metrics have names and units by the semantic conventions', async () => {
  const { metrics } = telemetry()
  const { store, run, send } = engineOnTrial()
  const first = await run()
  store.always('renew', hang)
  store.always('complete', failBefore())
  void first.settle(answer())
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs)
  await send()
  const described = (await metrics()).map((metric) => [metric.descriptor.name, metric.descriptor.unit, kindOf(metric)])
  expect(described.sort()).toEqual([
    ['once_per_key.active_runs', '{run}', 'up-down counter'],
    ['once_per_key.decisions', '{decision}', 'counter'],
    ['once_per_key.events', '{event}', 'counter'],
    ['once_per_key.lease.losses', '{loss}', 'counter'],
    ['once_per_key.pending_completions', '{completion}', 'up-down counter'],
    ['once_per_key.store.command.duration', 's', 'histogram'],
    ['once_per_key.unknown_outcomes', '{outcome}', 'counter'],
  ])
})

describe('a decision', () => {
  test.each<{ outcome: string; end?: number; second?: Request; options?: Options }>([
    { outcome: 'outcome=bypass', second: { key: null } },
    { outcome: 'outcome=key_invalid', second: { key: 'x'.repeat(256) } },
    { outcome: 'outcome=in_flight' },
    { outcome: 'outcome=mismatched', second: { body: 7 } },
    { outcome: 'outcome=replay', end: 201 },
    { outcome: 'outcome=outcome_unknown', end: 500, options: { unknownOutcome: 'refuse' } },
    { outcome: 'outcome=run previous_outcome=unknown', end: 500 },
    { outcome: 'outcome=run previous_outcome=failed', end: 422 },
    { outcome: 'outcome=run previous_outcome=none', second: { key: 'order-2' } },
  ])('is counted: $outcome $end', async ({ outcome, end, second, options }) => {
    const { run, send } = engineOnTrial(options)
    const first = await run()
    if (end !== undefined) await first.settle(answer(end))
    const { points } = telemetry()
    await send(second)
    expect(await points('once_per_key.decisions')).toEqual([[outcome, 1]])
  })

  test.each([
    ['refuse', 'outcome=store_unavailable'],
    ['runUnprotected', 'outcome=unprotected previous_outcome=unknown'],
  ] as const)('is counted where the store fails: %s', async (storeFailure, outcome) => {
    const { points } = telemetry()
    const { store, send } = engineOnTrial({ storeFailure })
    store.next('begin', failBefore())
    await send()
    expect(await points('once_per_key.decisions')).toEqual([[outcome, 1]])
  })

  test('on what is no request has its namespace', async () => {
    const { points } = telemetry()
    const once = runner({ store: new MemoryStore(), name: 'invoices' })
    await once({ scope: 'acme', key: 'in_7', input: 1 }, async () => 'sent')
    await once({ scope: 'acme', key: 'in_7', input: 1 }, async () => 'sent')
    expect(await points('once_per_key.decisions')).toEqual([
      ['namespace=run.invoices outcome=replay', 1],
      ['namespace=run.invoices outcome=run previous_outcome=none', 1],
    ])
  })
})

describe('runs under way', () => {
  test('are counted until their records stand', async () => {
    const { points } = telemetry()
    const { run } = engineOnTrial()
    const [first, second] = [await run({ key: 'order-1' }), await run({ key: 'order-2' })]
    expect(await points('once_per_key.active_runs')).toEqual([['', 2]])
    await first.settle(answer())
    expect(await points('once_per_key.active_runs')).toEqual([['', 1]])
    await second.fail()
    expect(await points('once_per_key.active_runs')).toEqual([['', 0]])
  })

  test('that began before anybody listened are not taken back', async () => {
    const { run } = engineOnTrial()
    const first = await run()
    const { points } = telemetry()
    await first.settle(answer())
    expect(await points('once_per_key.active_runs')).toEqual([['', 0]])
  })

  test('are taken back where listening stops', async () => {
    const { points, stop } = telemetry()
    const { run } = engineOnTrial()
    const first = await run()
    stop()
    stop()
    await first.settle(answer())
    expect(await points('once_per_key.active_runs')).toEqual([['', 0]])
    expect(await points('once_per_key.decisions')).toEqual([['outcome=run previous_outcome=none', 1]])
  })
})

describe('commands to the store', () => {
  test('are measured in seconds, by what became of them', async () => {
    const { points, metrics } = telemetry()
    const { store, run, send } = engineOnTrial()
    await (await run()).settle(answer())
    await send()
    store.next('begin', hang)
    const refused = send({ key: 'order-2' })
    await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs)
    await refused
    store.next('begin', failBefore(Object.assign(new Error('order-3 is secret'), { code: 'ECONNREFUSED' })))
    await send({ key: 'order-3' })
    const counted = await points('once_per_key.store.command.duration')
    expect(counted.filter(([attributes]) => !attributes.startsWith('command=release'))).toEqual([
      ['command=begin command.outcome=failed error.type=ECONNREFUSED', 1],
      ['command=begin command.outcome=ok', 1],
      ['command=begin command.outcome=refused', 1],
      ['command=begin command.outcome=timed_out error.type=StoreTimeout', 1],
      ['command=complete command.outcome=ok', 1],
    ])
    const durations = (await metrics()).find(({ descriptor }) => descriptor.unit === 's')
    const timedOut = durations?.dataPoints.find(({ attributes }) => attributes['error.type'] === 'StoreTimeout')
    expect(timedOut?.value).toMatchObject({
      sum: TIMES.storeTimeoutMs / 1_000,
      buckets: { boundaries: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10] },
    })
  })

  test('that are answered at once are measured', async () => {
    const { points } = telemetry()
    const engine = createOperationEngine({ store: new MemoryStore() })
    void engine.claim({ scope: 'acme', key: 'order-1', fingerprint: 'f' })
    expect(await points('once_per_key.store.command.duration')).toEqual([['command=begin command.outcome=ok', 1]])
  })
})

describe('what somebody has to look at', () => {
  test('a lost lease, and a success that stays pending until it is given up', async () => {
    const { points } = telemetry()
    const { store, run, engine } = engineOnTrial()
    const first = await run()
    store.always('renew', hang)
    store.always('complete', failBefore())
    void first.settle(answer())
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs)
    expect(await points('once_per_key.lease.losses')).toEqual([['lease.reason=lapsed', 1]])
    expect(await points('once_per_key.pending_completions')).toEqual([['', 1]])
    expect(await points('once_per_key.unknown_outcomes')).toEqual([])
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs)
    await engine.idle()
    expect(await points('once_per_key.pending_completions')).toEqual([['', 0]])
    expect(await points('once_per_key.unknown_outcomes')).toEqual([['event.type=completion_given_up', 1]])
  })

  test('a success that is stored late is pending no more', async () => {
    const { points } = telemetry()
    const { store, run, engine } = engineOnTrial()
    const first = await run()
    store.next('complete', failBefore())
    await first.settle(answer())
    expect(await points('once_per_key.pending_completions')).toEqual([['', 1]])
    await vi.advanceTimersByTimeAsync(1_000)
    await engine.idle()
    expect(await points('once_per_key.pending_completions')).toEqual([['', 0]])
  })

  test('unknown outcomes, as they come to be and as the next request meets them; certain ones are none', async () => {
    const { points } = telemetry()
    const { run, send } = engineOnTrial({ unknownOutcome: 'refuse' })
    await (await run({ key: 'certain' })).settle(answer(422))
    await run({ key: 'certain' })
    await (await run({ key: 'uncertain' })).settle(answer(500))
    await send({ key: 'uncertain' })
    const rerunning = engineOnTrial()
    await (await rerunning.run()).fail()
    await rerunning.run()
    expect(await points('once_per_key.unknown_outcomes')).toEqual([
      ['event.type=claimed', 1],
      ['event.type=failed', 2],
      ['event.type=outcome_unknown', 1],
    ])
  })

  test('each event, by its type', async () => {
    const { points } = telemetry()
    const { run, send } = engineOnTrial()
    await (await run()).settle(answer())
    await send()
    await send()
    expect(await points('once_per_key.events')).toEqual([
      ['event.type=claimed', 1],
      ['event.type=completed', 1],
      ['event.type=replayed', 2],
    ])
  })
})

describe('at the start', () => {
  /** The series of a metric with their values, as attributes in JSON. */
  async function series(metrics: Awaited<ReturnType<ReturnType<typeof telemetry>['metrics']>>, name: string) {
    const { dataPoints = [] } = metrics.find(({ descriptor }) => descriptor.name === `once_per_key.${name}`) ?? {}
    return new Map(dataPoints.map(({ attributes, value }) => [JSON.stringify(attributes), value]))
  }

  test.each([
    ['events', 27],
    ['decisions', 19],
    ['lease.losses', 2],
    ['unknown_outcomes', 5],
    ['active_runs', 1],
    ['pending_completions', 1],
  ])('each series of %s is zero', async (name, count) => {
    const { metrics } = telemetry()
    const begun = await series(await metrics(), name)
    expect(new Set(begun.values())).toEqual(new Set([0]))
    expect(begun.size).toBe(count)
  })

  test('there is a decision for each problem that a client can cause', async () => {
    const { metrics } = telemetry()
    const begun = await series(await metrics(), 'decisions')
    for (const code of Object.keys(problemCatalogue)) {
      expect([...begun.keys()]).toContain(JSON.stringify({ 'once_per_key.outcome': code }))
    }
  })

  test('what happens adds to a series that is there, but for a namespace’s first claim', async () => {
    const { metrics } = telemetry()
    const size = async () => {
      const now = await metrics()
      const counters = ['events', 'decisions', 'lease.losses', 'unknown_outcomes', 'active_runs', 'pending_completions']
      return (await Promise.all(counters.map((name) => series(now, name)))).reduce((sum, each) => sum + each.size, 0)
    }
    const before = await size()
    const { run, send, store } = engineOnTrial({ unknownOutcome: 'refuse' })
    await (await run()).settle(answer(500))
    await send()
    await send({ key: null })
    await send({ key: 'x'.repeat(256) })
    store.next('begin', failBefore())
    await send({ key: 'order-2' })
    expect(await size()).toBe(before)

    const once = runner({ store: new MemoryStore(), name: 'invoices' })
    await once({ scope: 'acme', key: 'in_7', input: 1 }, async () => 'sent')
    const withInvoices = await size()
    await once({ scope: 'acme', key: 'in_7', input: 1 }, async () => 'sent')
    await once({ scope: 'acme', key: 'in_7', input: 2 }, async () => 'sent').catch(() => {})
    expect(await size()).toBe(withInvoices)
  })
})

test('however many keys and scopes there are, the points are as many, and none has one', async () => {
  const { metrics } = telemetry({ hashSecret: 'a secret of many characters' })
  const { run } = engineOnTrial()
  const count = async () => (await metrics()).reduce((sum, { dataPoints }) => sum + dataPoints.length, 0)
  await (await run({ key: 'order-0' })).settle(answer())
  const before = await count()
  for (let i = 1; i < 10; i++) await (await run({ key: `order-${i}`, scope: `mer_${i}` })).settle(answer())
  expect(await count()).toBe(before)
  expect(JSON.stringify(await metrics())).not.toMatch(/order-|mer_|acme|hash/)
})

function kindOf(metric: MetricData): string {
  if (metric.dataPointType !== DataPointType.SUM) return 'histogram'
  return metric.isMonotonic ? 'counter' : 'up-down counter'
}
