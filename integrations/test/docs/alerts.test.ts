import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import type { StoreEvent } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { instrument } from 'once-per-key/opentelemetry'
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { headingsOf } from '../../../test/docs/links.js'
import { page, ROOT, read } from '../../../test/docs/pages.js'
import { engineOnTrial, type Options, TIMES } from '../../../test/support/engine-on-trial.js'
import { failingStore } from '../../../test/support/failing-store.js'
import { answerLate, failBefore, hang } from '../../../test/support/faults.js'
import { answer } from '../../../test/support/request-facts.js'
import { promtool } from '../support/promtool.js'

beforeAll(() => void promtool()) // It may have to be fetched.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const FILE = 'docs/dashboards/alerts.yml'
const { leaseMs, maxRunMs, storeTimeoutMs } = TIMES

/** What Prometheus scrapes of `instrument()`, from now on. */
function scraper(): () => Promise<string> {
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const meterProvider = new MeterProvider({ readers: [exporter] })
  const stop = instrument({ meterProvider })
  onTestFinished(async () => {
    stop()
    await meterProvider.shutdown()
  })
  return async () => new PrometheusSerializer().serialize((await exporter.collect()).resourceMetrics)
}

/** An engine, and what Prometheus scrapes of it. */
function service(options: Options = {}, store = failingStore()) {
  const scrape = scraper()
  return { ...engineOnTrial(options, store), scrape }
}

/** A store that tells something of itself, as a store does on whose server or pool that happens. */
async function told(event: StoreEvent) {
  const listeners: ((event: StoreEvent) => void)[] = []
  const observe = (listener: (event: StoreEvent) => void): void => void listeners.push(listener)
  const store = Object.assign(failingStore(), { observe })
  return cause(service({}, store), () => {
    for (const tell of listeners) tell(event)
  })
}

type Service = Pick<ReturnType<typeof service>, 'scrape'>

/** What Prometheus scrapes before and after something happens. */
async function cause({ scrape }: Service, happen: () => unknown) {
  const before = await scrape()
  await happen()
  return { before, after: await scrape() }
}

async function often(times: number, act: (i: number) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await act(i)
}

/** What causes each alert. */
const CAUSES: Readonly<Record<string, () => Promise<{ before: string; after: string }>>> = {
  IdempotencyRunUnprotected() {
    const one = service({ storeFailure: 'runUnprotected' })
    one.store.next('begin', failBefore())
    return cause(one, () => one.run())
  },
  IdempotencyRecordsEvicted() {
    const inner = new MemoryStore({ maxEntries: 1, whenFull: 'evict', maxScopeShare: 1 })
    const one = service({}, Object.assign(failingStore(inner), { observe: inner.observe.bind(inner) }))
    return cause(one, () => often(3, async (i) => (await one.run({ key: `order-${i}` })).settle(answer())))
  },
  /** It is told with the first command: before the first scrape. */
  async IdempotencyEvictionPolicy() {
    const { after } = await told({ type: 'eviction_policy', policy: 'allkeys-lru', advice: '' })
    return { before: '', after }
  },
  IdempotencyAnswersDropped: () => told({ type: 'answer_dropped' }),
  IdempotencyCompletionGivenUp() {
    const one = service()
    return cause(one, async () => {
      const run = await one.run()
      one.store.always('complete', failBefore())
      void run.settle(answer())
      await vi.advanceTimersByTimeAsync(maxRunMs)
      await one.engine.idle()
    })
  },
  IdempotencyOutcomeUnknownRefused() {
    const one = service({ unknownOutcome: 'refuse' })
    return cause(one, async () => {
      await (await one.run()).fail()
      await one.send()
    })
  },
  IdempotencyOutcomesUnknown() {
    const one = service()
    return cause(one, () => often(6, async () => (await one.run()).fail()))
  },
  IdempotencyLeasesLost() {
    const one = service()
    return cause(one, async () => {
      await one.run()
      one.store.always('renew', hang)
      await vi.advanceTimersByTimeAsync(leaseMs)
    })
  },
  IdempotencyStoreFailing() {
    const one = service()
    one.store.always('begin', failBefore())
    return cause(one, () => often(6, (i) => one.send({ key: `order-${i}` })))
  },
  IdempotencyStorePaused() {
    const one = service()
    one.store.always('begin', hang)
    one.store.always('release', hang)
    return cause(one, async () => {
      const sent = Array.from({ length: 1_000 }, (_, i) => one.send({ key: `order-${i}` }))
      await vi.advanceTimersByTimeAsync(0)
      vi.advanceTimersByTime(storeTimeoutMs)
      await Promise.all(sent)
      void one.send({ key: 'probe' })
      await one.send({ key: 'refused' })
    })
  },
  IdempotencyConnectionsExhausted: () => told({ type: 'connections_exhausted', waiting: 7, advice: '' }),
  IdempotencySweepFailed: () => told({ type: 'sweep_failed', error: { code: 'ECONNREFUSED', message: '' } }),
  IdempotencyOptionFailed() {
    const one = service({
      isSuccess() {
        throw new Error('a mistake')
      },
    })
    return cause(one, async () => (await one.run()).settle(answer()))
  },
  IdempotencyKeysMismatched() {
    const one = service()
    return cause(one, async () => {
      await one.run()
      await often(12, (i) => one.send({ body: { amount: i } }))
    })
  },
  async IdempotencyStoreSlow() {
    const one = service()
    await one.run({ key: 'swift' })
    one.store.always('begin', answerLate(800))
    return cause(one, async () => {
      const slow = one.run({ key: 'slow' })
      await vi.advanceTimersByTimeAsync(800)
      await slow
    })
  },
}

/** What is ordinary: a run, a replay, a duplicate that is too early, a refusal, a corrected request. */
async function ordinary() {
  const one = service()
  await (await one.run({ key: 'earlier' })).settle(answer())
  return cause(one, async () => {
    const run = await one.run()
    await one.send()
    await run.settle(answer())
    await one.send()
    await (await one.run({ key: 'refused' })).settle(answer(422))
    await (await one.run({ key: 'refused', body: { amount: 200 } })).settle(answer())
    await one.send({ key: 'x'.repeat(256) })
  })
}

const RULE = /- alert: (\w+)\n +expr: (.*)\n[\s\S]*?severity: (\w+)\n.*\n +summary: (".*")\n +runbook_url: (\S+)/g

const rules = [...read(FILE).matchAll(RULE)].map(
  ([, alert = '', expr = '', severity = '', summary = '""', runbook_url = '']) => ({
    alert,
    expr,
    severity,
    summary: JSON.parse(summary) as string,
    runbook_url,
  }),
)

test('promtool finds no mistake in the rules', async () => {
  const { stdout } = await promisify(execFile)(promtool(), ['check', 'rules', `${ROOT}${FILE}`])
  expect(stdout).toContain(`SUCCESS: ${rules.length} rules found`)
})

test('each alert has a cause', () => {
  expect(rules.map(({ alert }) => alert).sort()).toEqual(Object.keys(CAUSES).sort())
})

test('each alert has a runbook: a section of its own, which names it', () => {
  const sections = page('docs/observability.md').split(/^(?=### )/m)
  expect(new Set(rules.map(({ runbook_url }) => runbook_url)).size).toBe(rules.length)
  for (const { alert, runbook_url } of rules) {
    const [file, heading = ''] = runbook_url.split('#')
    expect(file).toBe('once-per-key/docs/observability.md')
    const section = sections.find((text) => headingsOf(text)[0] === heading)
    expect(section, runbook_url).toContain(`\`${alert}\``)
  }
})

test('each series that an alert counts is there from the start, at zero', async () => {
  const samples = samplesOf(await service().scrape())
  const watched = rules.flatMap(({ expr }) =>
    [...expr.matchAll(/(once_per_key_\w+_total)\{(\w+)=~?"([\w|]+)"\}/g)].flatMap(
      ([, metric = '', label, values = '']) =>
        values.split('|').map((value) => ({ metric, label: `${label}="${value}"` })),
    ),
  )
  expect(watched.length).toBeGreaterThan(rules.length)
  for (const { metric, label } of watched) {
    const found = samples.filter(([name]) => name.startsWith(`${metric}{`) && name.includes(label))
    expect(
      found.map(([, value]) => value),
      `${metric} ${label}`,
    ).toEqual([0])
  }
})

test('slow commands fire by the name that a collector gives the histogram, with its unit', async () => {
  const rule = rules.find(({ alert }) => alert === 'IdempotencyStoreSlow') as (typeof rules)[number]
  const { before, after } = await (CAUSES[rule.alert] as () => ReturnType<typeof ordinary>)()
  const collected = (scraped: string) =>
    scraped.replaceAll('command_duration_bucket', 'command_duration_seconds_bucket')
  await checked({ before: collected(before), after: collected(after) }, [
    { eval_time: '12m', alertname: rule.alert, exp_alerts: [expected(rule)] },
  ])
})

test.each(rules)('$alert fires once what it watches has happened, and not before', async (rule) => {
  const scraped = await (CAUSES[rule.alert] as () => ReturnType<typeof ordinary>)()
  await checked(scraped, [
    { eval_time: '9m', alertname: rule.alert, exp_alerts: [] },
    { eval_time: '12m', alertname: rule.alert, exp_alerts: [expected(rule)] },
  ])
})

test('no alert fires where all goes well', async () => {
  const silent = rules.map(({ alert }) => ({ eval_time: '12m', alertname: alert, exp_alerts: [] }))
  await checked(await ordinary(), silent)
})

test('each event of the table of alerts is watched, but what operators did', () => {
  const guide = page('docs/production.md')
  const table = guide.slice(guide.indexOf('| event |'), guide.indexOf('## What warns by itself'))
  const named = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, first = '']) => [...first.matchAll(/`([a-z_]+)`/g)])
  const events = [...new Set(named.map(([, name = '']) => name))].filter((name) => name !== 'state')
  expect(events.length).toBeGreaterThan(15)
  expect(events.filter((name) => !read(FILE).includes(name))).toEqual(['resolved'])
})

test('the dashboard asks for metrics that there are, in queries that promtool reads', async () => {
  const { panels } = JSON.parse(read('docs/dashboards/grafana.json')) as { panels: { targets: { expr: string }[] }[] }
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')))
  expect(queries.length).toBeGreaterThan(8)
  const { after } = await ordinary()
  const metrics = new Set([...after.matchAll(/^(\w+)[{ ]/gm)].map(([, name]) => name))
  const asked = queries
    .map((query) => query.replaceAll(/\b(?:by \([^)]*\)|\w+=)/g, '').replaceAll('(_seconds)?', ''))
    .flatMap((query) => query.match(/once_per_key_\w+/g) ?? [])
  expect(asked.length).toBeGreaterThanOrEqual(queries.length)
  expect(asked.filter((name) => !metrics.has(name))).toEqual([])
  const recorded = queries.map((expr, i) => ({ record: `query_${i}`, expr }))
  await inAFile({ groups: [{ name: 'dashboard', rules: recorded }] }, (file) => [promtool(), ['check', 'rules', file]])
})

function expected({ severity, summary, runbook_url }: (typeof rules)[number]) {
  return { exp_labels: { severity }, exp_annotations: { summary, runbook_url } }
}

/** promtool's own tests of rules: over ten minutes of what was scraped before, then ten of what was scraped after. */
async function checked({ before, after }: { before: string; after: string }, tests: readonly object[]): Promise<void> {
  const earlier = new Map(samplesOf(before))
  const series = samplesOf(after).map(([name, value]) => {
    const first = earlier.get(name)
    return { series: name, values: `${first === undefined ? '_x10' : `${first}+0x9`} ${value}+0x9` }
  })
  const unit = { interval: '1m', input_series: series, alert_rule_test: tests }
  const suite = { rule_files: [`${ROOT}${FILE}`], evaluation_interval: '1m', tests: [unit] }
  await inAFile(suite, (file) => [promtool(), ['test', 'rules', file]])
}

function samplesOf(scraped: string): [string, number][] {
  return scraped
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))])
}

/** JSON is YAML. */
async function inAFile(content: object, command: (file: string) => [string, string[]]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-rules-'))
  try {
    const file = join(folder, 'rules.yml')
    await writeFile(file, JSON.stringify(content))
    await promisify(execFile)(...command(file))
  } finally {
    await rm(folder, { recursive: true })
  }
}
