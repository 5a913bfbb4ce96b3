import { hasSubscribers } from 'node:diagnostics_channel'
import express from 'express'
import { idempotency } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { authenticate } from '../../../examples/recipes/merchant.js'
import { counted, served } from '../../../test/recipes/served.js'
import { type FailingStore, failingStore } from '../../../test/support/failing-store.js'
import { failBefore } from '../../../test/support/faults.js'
import { measureCommands } from '../../recipes/command-durations.js'

async function start<Kept extends Store>(store: Kept) {
  const registry = new Registry()
  const stop = measureCommands(registry)
  onTestFinished(stop)
  const once = idempotency({ store, scope: (req) => req.merchantId, onEvent() {} })
  const app = express()
  app.post('/payouts', authenticate, express.json(), once, counted().handler)
  const { post } = await served(app)
  const counts = async () => {
    const lines = (await registry.metrics()).split('\n')
    return lines.filter((line) => line.startsWith('idempotency_store_command_duration_seconds_count'))
  }
  return { post, counts, stop, store }
}

test('a scrape says how many commands took how long, by what became of them', async () => {
  const { post, counts, store } = await start<FailingStore>(failingStore())
  await post()
  await post()
  store.next('begin', failBefore())
  await post()
  expect((await counts()).sort()).toEqual([
    'idempotency_store_command_duration_seconds_count{command="begin",outcome="failed"} 1',
    'idempotency_store_command_duration_seconds_count{command="begin",outcome="ok"} 1',
    'idempotency_store_command_duration_seconds_count{command="begin",outcome="refused"} 1',
    'idempotency_store_command_duration_seconds_count{command="complete",outcome="ok"} 1',
    'idempotency_store_command_duration_seconds_count{command="release",outcome="refused"} 1',
  ])
})

test('a store that replies at once is measured once for each command', async () => {
  const { post, counts } = await start(new MemoryStore())
  await post()
  expect((await counts()).sort()).toEqual([
    'idempotency_store_command_duration_seconds_count{command="begin",outcome="ok"} 1',
    'idempotency_store_command_duration_seconds_count{command="complete",outcome="ok"} 1',
  ])
})

test('what was stopped listens no more', async () => {
  const { post, counts, stop } = await start(new MemoryStore())
  stop()
  await post()
  expect(await counts()).toEqual([])
  expect(hasSubscribers('tracing:once-per-key:command:start')).toBe(false)
})
