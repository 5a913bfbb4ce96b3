import { randomUUID } from 'node:crypto'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, expect, test, vi } from 'vitest'
import { BooksUnavailable, type Ledger, memoryLedger } from '../../examples/payments/ledger.js'
import { readFeed } from './feed-reader.js'
import { expectRefusal, expectSameAnswer, expectSuccess } from './operations-table.js'
import { type Service, startService } from './payments-service.js'

const LEASE_MS = 3_000
const PATH = '/api/service/order/create'
const BODY = { amount: 7_500, currency: 'EUR' }
const STEPS = { 'x-demo-handler': 'steps' }
const CRASH = { 'x-demo-crash': 'true' }

let nowMs = 0
let service: Service

afterEach(() => service.stop())

async function start(ledger?: Ledger): Promise<void> {
  service = await startService({ store: new MemoryStore({ now: () => nowMs }), ...(ledger && { ledger }) })
}

test('an owner that dies after the charge: the retry does not charge again, ships, and writes the mail', async () => {
  await start()
  const { headers, request, runs } = order()
  const feed = await readFeed(service.origin, request.key)
  const lost = service.send(PATH, { ...request, headers: { ...headers, ...CRASH } }).catch(() => 'no answer')
  await vi.waitFor(async () => expect(await runs()).toBe(1), { interval: 5 })
  expectRefusal(await service.send(PATH, request), 'in_flight')

  nowMs += LEASE_MS
  const retry = await service.send(PATH, request)
  expectSuccess(retry)
  expect(retry.headers.get('x-demo-outcome')).toBe('resumed')
  expect(retry.json).toMatchObject({
    id: expect.stringMatching(/^ord_/),
    parcelId: expect.stringMatching(/^par_/),
    mailId: expect.stringMatching(/^mail_/),
  })
  expect(await runs()).toBe(1)
  expectSameAnswer(await service.send(PATH, request), retry)
  const told = [
    { type: 'claimed', attempt: 1 },
    { type: 'step_done', attempt: 1, label: 'charge' },
    { type: 'in_flight' },
    { type: 'claimed', attempt: 2, previousOutcome: 'unknown' },
    { type: 'step_resumed', attempt: 2, label: 'charge' },
    { type: 'step_done', attempt: 2, label: 'ship' },
    { type: 'step_done', attempt: 2, label: 'mail' },
    { type: 'completed', attempt: 2 },
    { type: 'replayed' },
  ]
  for (const event of told) expect((await feed.nextEvent())?.event).toMatchObject(event)
  await service.stop()
  expect(await lost).toBe('no answer')
})

test('an owner that dies after the charge, before that step is recorded: the books know the charge by its key', async () => {
  const inner = memoryLedger()
  let isReplyLost = true
  await start({
    async transaction(merchantId, work) {
      const result = await inner.transaction(merchantId, work)
      if (!isReplyLost) return result
      isReplyLost = false
      throw new BooksUnavailable('The reply was lost', true)
    },
  })
  const { request, runs } = order()
  expectRefusal(await service.send(PATH, request), 'books_unavailable', 503)
  expect(await runs()).toBe(1)
  const retry = await service.send(PATH, request)
  expectSuccess(retry)
  expect(retry.headers.get('x-demo-outcome')).toBeNull()
  expect(await runs()).toBe(1)
})

test('without a crash, all three steps are done by the first attempt', async () => {
  await start()
  const { request, runs } = order()
  const first = await service.send(PATH, request)
  expectSuccess(first)
  expect(first.headers.get('x-demo-outcome')).toBeNull()
  expectSameAnswer(await service.send(PATH, request), first)
  expect(await runs()).toBe(1)
})

test('a charge that is refused takes its step back: the key is free for a corrected order', async () => {
  await start()
  const { request, runs } = order()
  const wrong = { ...request, body: { ...BODY, customerId: 'cus_000000000000000000000000' } }
  expectRefusal(await service.send(PATH, wrong), 'entry_not_found', 404)
  expectSuccess(await service.send(PATH, request))
  expect(await runs()).toBe(1)
})

test('an order in steps needs a key', async () => {
  await start()
  expectRefusal(await service.send(PATH, { body: BODY, headers: STEPS }), 'key_missing', 400)
})

test('only the order is made in steps', async () => {
  await start()
  const path = '/api/service/payout/create'
  const request = { body: await service.sample(path), key: randomUUID(), headers: STEPS }
  expectRefusal(await service.send(path, request), 'handler_invalid', 400)
  expect(service.log).toEqual([])
})

function order() {
  const name = randomUUID()
  const headers = { ...STEPS, 'x-demo-operation': name }
  return {
    headers,
    request: { body: BODY, key: randomUUID(), headers },
    runs: async () => (await service.send(`/demo/operations/${name}`, { method: 'GET' })).json.runs,
  }
}
