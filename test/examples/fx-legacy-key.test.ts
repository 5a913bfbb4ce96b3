import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from './payments-service.js'

const PATH = '/api/service/fx/execute'
const BODY = { sellAmount: 10_000, sellCurrency: 'EUR', buyCurrency: 'USD' }
const DEPRECATION = `@${Date.UTC(2026, 0, 1) / 1_000}`

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

test('the key in the body protects the conversion, and each response says that it is deprecated', async () => {
  const body = { ...BODY, idempotencyKey: randomUUID() }
  const first = await service.send(PATH, { body })
  const retry = await service.send(PATH, { body })
  const changed = await service.send(PATH, { body: { ...body, sellAmount: 1 } })
  expect([first.status, retry.status, changed.status]).toEqual([201, 201, 409])
  expect(retry.bytes.equals(first.bytes)).toBe(true)
  expect(retry.headers.get('idempotent-replayed')).toBe('true')
  for (const { headers } of [first, retry, changed]) expect(headers.get('deprecation')).toBe(DEPRECATION)
})

test('a client moves from the field to the header between two tries', async () => {
  const key = randomUUID()
  const first = await service.send(PATH, { body: { ...BODY, idempotencyKey: key } })
  const retry = await service.send(PATH, { body: BODY, key })
  expect(retry.headers.get('idempotent-replayed')).toBe('true')
  expect(retry.bytes.equals(first.bytes)).toBe(true)
  expect(retry.headers.get('deprecation')).toBeNull()
})

test('where both are there, the field wins: the official SDK adds a new header to every call', async () => {
  const idempotencyKey = randomUUID()
  const operation = randomUUID()
  const asTheSdkDoes = () =>
    service.send(PATH, {
      body: { ...BODY, idempotencyKey },
      headers: { 'idempotency-key': `sdk-retry-${randomUUID()}`, 'x-demo-operation': operation },
    })
  const first = await asTheSdkDoes()
  const retry = await asTheSdkDoes()
  expect([first.status, retry.status]).toEqual([201, 201])
  expect(retry.bytes.equals(first.bytes)).toBe(true)
  expect(retry.headers.get('idempotent-replayed')).toBe('true')
  for (const { headers } of [first, retry]) expect(headers.get('deprecation')).toBe(DEPRECATION)
  const { json } = await service.send(`/demo/operations/${operation}`, { method: 'GET' })
  expect(json.runs).toBe(1)
})

test('null in the field is no key; another value that is no string is refused', async () => {
  const first = await service.send(PATH, { body: { ...BODY, idempotencyKey: null } })
  const second = await service.send(PATH, { body: { ...BODY, idempotencyKey: null } })
  expect([first.status, second.status]).toEqual([201, 201])
  expect(second.json.id).not.toBe(first.json.id)
  const number = await service.send(PATH, { body: { ...BODY, idempotencyKey: 7 } })
  expect(number.json).toMatchObject({ status: 400, code: 'key_invalid' })
})

test('idle waits for conversions too', async () => {
  const gate = service.hold()
  const answer = service.send(PATH, { body: BODY, key: randomUUID() })
  await gate.entered
  let isIdle = false
  const idle = service.idle().then(() => {
    isIdle = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isIdle).toBe(false)
  gate.open()
  await idle
  expect((await answer).status).toBe(201)
})

test('other operations know no such field', async () => {
  const body = { amount: 100, currency: 'EUR', idempotencyKey: randomUUID() }
  const { json } = await service.send('/api/service/payout/create', { body })
  expect(json.errors).toEqual([{ path: 'idempotencyKey', message: 'Unknown field' }])
})
