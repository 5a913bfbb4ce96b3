import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectRefusal, expectSameAnswer, expectSuccess, operationsTable } from './operations-table.js'
import { type Service, startService } from './payments-service.js'

describe('in memory', () => operationsTable(startService))

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

test('without a key each request runs', async () => {
  const body = await service.sample('/api/service/payout/create')
  const first = await service.send('/api/service/payout/create', { body })
  const second = await service.send('/api/service/payout/create', { body })
  expect(second.json.id).not.toBe(first.json.id)
})

test('a client that hangs up does not stop its operation, and a retry gets the answer', async () => {
  const path = '/api/service/payout/create'
  const request = { body: await service.sample(path), key: randomUUID() }
  const leaving = new AbortController()
  const gate = service.hold()
  const first = service.send(path, { ...request, signal: leaving.signal }).catch((error) => error.name)
  await gate.entered
  leaving.abort()
  expect(await first).toBe('AbortError')
  expectRefusal(await service.send(path, request), 'in_flight')
  gate.open()
  await service.idle()
  const retry = await service.send(path, request)
  expect(retry.headers.get('idempotent-replayed')).toBe('true')
  expect(decisions(request.key)).toEqual(['claimed', 'in_flight', 'completed', 'replayed'])
})

test('the demo delay does not count when two requests are compared', async () => {
  const path = '/api/service/payout/create'
  const request = { body: await service.sample(path), key: randomUUID() }
  const first = await service.send(path, { ...request, headers: { 'x-demo-delay-ms': '1' } })
  expectSuccess(first)
  expectSameAnswer(await service.send(path, { ...request, headers: { 'x-demo-delay-ms': '0' } }), first)
})

test('the log holds no body and no API key', async () => {
  const reference = `marker ${randomUUID()}`
  const request = { body: { amount: 1, currency: 'EUR', reference }, key: randomUUID() }
  await service.send('/api/service/payout/create', request)
  await service.send('/api/service/payout/create', request)
  const text = JSON.stringify(service.log)
  expect(text).toContain(request.key)
  expect(text).not.toContain(reference)
  expect(text).not.toContain('demo_')
})

function decisions(key: string): unknown[] {
  return service.log.filter((line) => line.key === key).map((line) => line.msg)
}
