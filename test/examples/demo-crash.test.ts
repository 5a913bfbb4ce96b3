import { randomUUID } from 'node:crypto'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, expect, test, vi } from 'vitest'
import { expectRefusal, expectSameAnswer, expectSuccess } from './operations-table.js'
import { type Service, startService } from './payments-service.js'

const LEASE_MS = 3_000
const PATH = '/api/service/payout/create'
const CRASH = { 'x-demo-crash': 'true' }

let nowMs = 0
let service: Service

afterEach(() => service.stop())

async function start(): Promise<void> {
  service = await startService({ store: new MemoryStore({ now: () => nowMs }) })
}

test.each([PATH, '/api/service/fx/execute', '/api/service/order/expire'])(
  '%s: the effect is there, the next attempt is told so, and answers for it',
  async (path) => {
    await start()
    const name = randomUUID()
    const headers = { 'x-demo-operation': name }
    const request = { body: await service.sample(path), key: randomUUID(), headers }
    const lost = service.send(path, { ...request, headers: { ...headers, ...CRASH } }).catch(() => 'no answer')
    await vi.waitFor(async () => expect(await runs(name)).toBe(1), { interval: 5 })

    expectRefusal(await service.send(path, request), 'in_flight')
    nowMs += LEASE_MS - 1
    expectRefusal(await service.send(path, request), 'in_flight')
    nowMs += 1
    const retry = await service.send(path, request)
    expectSuccess(retry)
    expect(retry.headers.get('x-demo-outcome')).toBe('found')
    expect(await runs(name)).toBe(1)
    expectSameAnswer(await service.send(path, request), retry)
    expect(service.log.filter((line) => line.key === request.key)).toMatchObject([
      { msg: 'claimed', attempt: 1, previousOutcome: 'none' },
      { msg: 'in_flight' },
      { msg: 'in_flight' },
      { msg: 'claimed', attempt: 2, previousOutcome: 'unknown' },
      { msg: 'completed', attempt: 2 },
      { msg: 'replayed' },
    ])
    await service.stop()
    expect(await lost).toBe('no answer')
  },
)

test('the connection breaks when the lease is over, and nothing is left of the run', async () => {
  await start()
  const key = randomUUID()
  const lost = service.send(PATH, { body: await service.sample(PATH), key, headers: CRASH })
  await expect(lost).rejects.toThrow()
  await service.idle()
  expect(service.log.map((line) => line.msg)).toEqual(['claimed'])
})

test('an operation that fails before its effect is no crash: it is answered, and its key is free', async () => {
  await start()
  const key = randomUUID()
  const body = { amount: -1, currency: 'EUR' }
  expectRefusal(await service.send(PATH, { body, key, headers: CRASH }), 'validation_failed', 400)
  expectSuccess(await service.send(PATH, { body: { ...body, amount: 1 }, key }))
})

test.each(['false', '', '1'])('the value %j is refused before the key is claimed', async (value) => {
  await start()
  const key = randomUUID()
  const headers = { 'x-demo-crash': value }
  expectRefusal(await service.send(PATH, { body: await service.sample(PATH), key, headers }), 'crash_invalid', 400)
  expect(service.log).toEqual([])
})

async function runs(name: string): Promise<number> {
  return (await service.send(`/demo/operations/${name}`, { method: 'GET' })).json.runs
}
