import express from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { authenticate } from '../../examples/recipes/merchant.js'
import { logDecisions } from '../../examples/recipes/pino.js'
import { failingStore } from '../support/failing-store.js'
import { counted, served } from './served.js'

async function start() {
  const lines: Record<string, unknown>[] = []
  const logger = pino({ base: null, timestamp: false }, { write: (line) => lines.push(JSON.parse(line)) })
  const store = failingStore(new MemoryStore())
  const once = idempotency({ store, scope: (req) => req.merchantId, onEvent: logDecisions(logger) })
  const app = express()
  app.post('/payouts', authenticate, express.json(), once, counted().handler)
  return { ...(await served(app)), lines, store }
}

const INFO = 30
const WARN = 40

test('each decision is one line, with its scope and its key', async () => {
  const { post, lines } = await start()
  await post()
  await post()
  await post({ body: { amount: 200 } })
  const about = { level: INFO, scope: 'mer_acme', key: 'order-1' }
  expect(lines).toEqual([
    { ...about, msg: 'claimed', attempt: 1, previousOutcome: 'none', because: 'new' },
    { ...about, msg: 'completed', attempt: 1, status: 201, answerKept: true },
    { ...about, msg: 'replayed', attempt: 1 },
    { ...about, msg: 'mismatched' },
  ])
})

test('what somebody has to look at stands out, and holds no body', async () => {
  const { post, lines, store } = await start()
  store.next('begin', () => Promise.reject(new Error('The store is away')))
  expect(await post({ body: { amount: 7_654_321 } })).toMatchObject({ status: 503 })
  expect(lines).toEqual([
    expect.objectContaining({ level: WARN, msg: 'store_failed', command: 'begin', key: 'order-1' }),
  ])
  expect(JSON.stringify(lines)).toContain('The store is away')
  expect(JSON.stringify(lines)).not.toContain('7654321')
})
