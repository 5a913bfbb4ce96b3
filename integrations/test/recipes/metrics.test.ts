import express from 'express'
import { type IdempotencyEvent, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { authenticate } from '../../../examples/recipes/merchant.js'
import { counted, served } from '../../../test/recipes/served.js'
import { gate } from '../../../test/support/gate.js'
import { countDecisions } from '../../recipes/metrics.js'

async function start(work?: () => unknown) {
  const registry = new Registry()
  const payout = counted(work)
  const once = idempotency({
    store: new MemoryStore(),
    scope: (req) => req.merchantId,
    onEvent: countDecisions(registry),
  })
  const app = express()
  app.post('/payouts', authenticate, express.json(), once, payout.handler)
  app.get('/metrics', async (_req, res) => {
    res.type(registry.contentType).send(await registry.metrics())
  })
  const { origin, post } = await served(app)
  return { post, runs: payout.runs, scrape: async () => (await fetch(`${origin}/metrics`)).text() }
}

test('a scrape says how often each decision was made', async () => {
  const { opened, open } = gate()
  const { post, runs, scrape } = await start(() => opened)
  const first = post()
  await expect.poll(runs).toBe(1)
  await post()
  open()
  await first
  await post()
  await post()
  await post({ body: { amount: 200 } })
  await post({ key: 'x'.repeat(256) })

  const lines = (await scrape()).split('\n').filter((line) => /^idempotency_decisions_total.* [^0]$/.test(line))
  expect(lines.sort()).toEqual([
    'idempotency_decisions_total{type="claimed",detail="none"} 1',
    'idempotency_decisions_total{type="completed",detail=""} 1',
    'idempotency_decisions_total{type="in_flight",detail=""} 1',
    'idempotency_decisions_total{type="mismatched",detail=""} 1',
    'idempotency_decisions_total{type="rejected",detail="key_invalid"} 1',
    'idempotency_decisions_total{type="replayed",detail=""} 2',
  ])
})

test('however many keys and scopes there are, the time series are as many', async () => {
  const { post, scrape } = await start()
  const series = async () => (await scrape()).split('\n').length
  await post({ key: 'order-1' })
  const before = await series()
  for (let i = 2; i < 10; i++) await post({ key: `order-${i}` })
  await post({ key: 'order-2', headers: { Authorization: 'Bearer demo_globex' } })
  expect(await series()).toBe(before)
  expect(await scrape()).not.toMatch(/order-|mer_/)
})

const about = { scope: 'mer_acme', key: 'order-1' }
const error = { name: 'Error', message: 'The store is away' }
const detailed: readonly (readonly [IdempotencyEvent, string])[] = [
  [{ ...about, type: 'claimed', attempt: 2, previousOutcome: 'unknown', because: 'outcome_unknown' }, 'unknown'],
  [{ ...about, type: 'failed', attempt: 1, uncertain: true, because: 'status' }, 'uncertain'],
  [{ ...about, type: 'failed', attempt: 1, uncertain: false, because: 'refused' }, 'certain'],
  [{ ...about, type: 'resolved', attempt: 1, as: 'failed' }, 'failed'],
  [{ ...about, type: 'lease_lost', attempt: 1, reason: 'taken' }, 'taken'],
  [{ ...about, type: 'store_failed', command: 'renew', error }, 'renew'],
  [{ type: 'option_failed', option: 'isSuccess', error }, 'isSuccess'],
  [{ type: 'eviction_policy', policy: 'allkeys-lru', advice: 'Set it to noeviction.' }, ''],
]

test.each(detailed)('%j is counted as %s', async (event, detail) => {
  const registry = new Registry()
  countDecisions(registry)(event)
  const line = `idempotency_decisions_total{type="${event.type}",detail="${detail}"} 1`
  expect(await registry.metrics()).toContain(line)
})

type Told<Type extends IdempotencyEvent['type']> = Extract<IdempotencyEvent, { type: Type }>
type OperatorsCommand = 'resolve' | 'list' | 'forget' | 'listScope'
const commands: Record<Exclude<Told<'store_failed'>['command'], OperatorsCommand>, string> = {
  begin: 'store_failed',
  renew: 'store_failed',
  complete: 'store_failed',
  release: 'store_failed',
  step: 'store_failed',
  inspect: 'store_failed',
  look: 'store_failed',
  fence: 'store_failed',
  withhold: 'store_failed',
}
const options: Record<Told<'option_failed'>['option'], string> = {
  renderProblem: 'option_failed',
  isSuccess: 'option_failed',
  isCertainFailure: 'option_failed',
  keepFailure: 'option_failed',
  keepHeader: 'option_failed',
  streams: 'option_failed',
}

test.each(Object.entries({ ...commands, ...options }))(
  'a failure of %s can be alerted on the first time',
  async (detail, type) => {
    const registry = new Registry()
    countDecisions(registry)
    expect(await registry.metrics()).toContain(`idempotency_decisions_total{type="${type}",detail="${detail}"} 0`)
  },
)
