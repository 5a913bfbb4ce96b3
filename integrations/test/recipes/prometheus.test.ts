import express from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { authenticate } from '../../../examples/recipes/merchant.js'
import { counted, served } from '../../../test/recipes/served.js'
import { prometheusMetrics } from '../../recipes/prometheus.js'

async function start() {
  const { scrape, stop } = prometheusMetrics()
  onTestFinished(stop)
  const once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })
  const app = express()
  app.post('/payouts', authenticate, express.json(), once, counted().handler)
  app.get('/metrics', scrape)
  const { origin, post } = await served(app)
  const lines = async () => (await (await fetch(`${origin}/metrics`)).text()).split('\n')
  return { post, lines }
}

test('a scrape says how often each decision was made, and what was not made is zero', async () => {
  const { post, lines } = await start()
  await post()
  await post()
  await post({ body: { amount: 200 } })
  const decisions = (await lines()).filter((line) => line.startsWith('once_per_key_decisions_total'))
  const values = decisions.map((line) => {
    const [, outcome = '', value = ''] = /once_per_key_outcome="(\w+)".*} (\d+)$/.exec(line) ?? []
    const [, previous = ''] = /previous_outcome="(\w+)"/.exec(line) ?? []
    return [`${outcome} ${previous}`.trim(), Number(value)] as const
  })
  expect(values.filter(([, value]) => value > 0)).toEqual([
    ['run none', 1],
    ['replay', 1],
    ['mismatched', 1],
  ])
  expect(values).toContainEqual(['outcome_unknown', 0])
})

test('however many keys and scopes there are, the time series are as many', async () => {
  const { post, lines } = await start()
  await post({ key: 'order-1' })
  const before = (await lines()).length
  for (let i = 2; i < 10; i++) await post({ key: `order-${i}` })
  await post({ key: 'order-2', headers: { Authorization: 'Bearer demo_globex' } })
  expect(await lines()).toHaveLength(before)
  expect((await lines()).join()).not.toMatch(/order-|mer_/)
})
