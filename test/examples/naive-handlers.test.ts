import { randomUUID } from 'node:crypto'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, expect, test, vi } from 'vitest'
import { expectRefusal, expectSameAnswer, expectSuccess } from './operations-table.js'
import { type Received, type Service, startService } from './payments-service.js'

// The example's handlers look in their books under a derived key, so that a crash left one payment: who tried it credited the
// library with the demo's own work.

const LEASE_MS = 3_000
const PATH = '/api/service/payout/create'
const BODY = { amount: 5_000, currency: 'EUR' }
const NAIVE = { 'x-demo-handler': 'naive' }

let nowMs = 0
let service: Service

afterEach(() => service.stop())

test.each([
  { handler: 'careful', headers: {}, runs: 1, outcome: 'found' },
  { handler: 'naive', headers: NAIVE, runs: 2, outcome: null },
])('after a crash, a $handler handler has paid $runs times, and was told that the outcome is unknown', async (each) => {
  const { retry, name, key, request } = await crashed(each.headers)
  expectSuccess(retry)
  expect(retry.headers.get('x-demo-outcome')).toBe(each.outcome)
  expect(await runs(name)).toBe(each.runs)
  expect(service.log.filter((line) => line.key === key)).toMatchObject([
    { msg: 'claimed', attempt: 1, previousOutcome: 'none' },
    { msg: 'claimed', attempt: 2, previousOutcome: 'unknown' },
    { msg: 'completed', attempt: 2 },
  ])
  // From its answer on, the key protects either of them.
  expectSameAnswer(await service.send(PATH, request), retry)
  expect(await runs(name)).toBe(each.runs)
})

test('without a crash, a naive handler has paid once for ten requests: that is the library', async () => {
  await start()
  const name = randomUUID()
  const request = { body: BODY, key: randomUUID(), headers: { ...NAIVE, 'x-demo-operation': name } }
  await Promise.all(Array.from({ length: 10 }, () => service.send(PATH, request)))
  await service.idle()
  expectSuccess(await service.send(PATH, request))
  expect(await runs(name)).toBe(1)
})

test('the handler does not count when two requests are compared', async () => {
  await start()
  const key = randomUUID()
  const first = await service.send(PATH, { body: BODY, key, headers: NAIVE })
  expectSameAnswer(await service.send(PATH, { body: BODY, key }), first)
})

test.each(['careful', '', 'in-transaction'])('the handler %j is refused before the key is claimed', async (handler) => {
  await start()
  const headers = { 'x-demo-handler': handler }
  expectRefusal(await service.send(PATH, { body: BODY, key: randomUUID(), headers }), 'handler_invalid', 400)
  expect(service.log).toEqual([])
})

async function start(): Promise<void> {
  service = await startService({ store: new MemoryStore({ now: () => nowMs }) })
}

/** The owner dies behind its effect, and its lease lapses. */
async function crashed(headers: Readonly<Record<string, string>>) {
  await start()
  const name = randomUUID()
  const request = { body: BODY, key: randomUUID(), headers: { ...headers, 'x-demo-operation': name } }
  const dying = { ...request, headers: { ...request.headers, 'x-demo-crash': 'true' } }
  const lost: Promise<Received | string> = service.send(PATH, dying).catch(() => 'no answer')
  await vi.waitFor(async () => expect(await runs(name)).toBe(1), { interval: 5 })
  nowMs += LEASE_MS
  const retry = await service.send(PATH, request)
  expect(await lost).toBe('no answer')
  return { retry, name, key: request.key, request }
}

async function runs(name: string): Promise<number> {
  return (await service.send(`/demo/operations/${name}`, { method: 'GET' })).json.runs
}
