import express from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/receiver'
import { runner } from 'once-per-key/run'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { authenticate } from '../../examples/recipes/merchant.js'
import { logDecisions } from '../../examples/recipes/pino.js'
import { failingStore } from '../support/failing-store.js'
import { counted, served } from './served.js'

function log() {
  const lines: Record<string, unknown>[] = []
  const logger = pino({ base: null, timestamp: false }, { write: (line) => lines.push(JSON.parse(line)) })
  return { lines, logger }
}

async function start() {
  const { lines, logger } = log()
  const store = failingStore(new MemoryStore())
  const once = idempotency({ store, scope: (req) => req.merchantId, onEvent: logDecisions(logger) })
  const app = express()
  app.post('/payouts', authenticate, express.json(), once, counted().handler)
  return { ...(await served(app)), lines, store }
}

const INFO = 30
const WARN = 40
const ERROR = 50

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
    expect.objectContaining({ level: ERROR, msg: 'store_failed', command: 'begin', key: 'order-1' }),
  ])
  expect(JSON.stringify(lines)).toContain('The store is away')
  expect(JSON.stringify(lines)).not.toContain('7654321')
})

test('a webhook handler that fails is an error, with its stack and its causes', async () => {
  const { lines, logger } = log()
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'billing',
    verify: false,
    parse: (raw) => JSON.parse(raw.toString()),
    on: {
      paid() {
        throw new Error('The invoice was not booked.', { cause: new TypeError('fetch failed') })
      },
    },
    onEvent: logDecisions(logger),
  })
  const { origin } = await served((req, res) => receiver(req, res))
  await fetch(origin, { method: 'POST', body: '{"id":"evt_1","type":"paid"}' })
  const stack = expect.stringContaining('pino.test.ts')
  const cause = { name: 'TypeError', message: 'fetch failed', stack }
  const about = { scope: 'billing', key: 'evt_1', attempt: 1 }
  expect(lines.slice(1)).toEqual([
    {
      ...about,
      level: ERROR,
      msg: 'handler_failed',
      error: { name: 'Error', message: 'The invoice was not booked.', stack, cause },
    },
    { ...about, level: WARN, msg: 'failed', uncertain: true, because: 'status' },
  ])
})

test('a result of a job that is not kept is an error, with its stack', async () => {
  const { lines, logger } = log()
  const once = runner({ store: new MemoryStore(), name: 'payouts', onEvent: logDecisions(logger) })
  await once({ scope: 'acme', key: 'order-1', input: 1 }, () => 1n as never)
  expect(lines).toContainEqual(
    expect.objectContaining({
      level: ERROR,
      msg: 'result_not_kept',
      error: expect.objectContaining({ name: 'TypeError', stack: expect.any(String) }),
    }),
  )
})
