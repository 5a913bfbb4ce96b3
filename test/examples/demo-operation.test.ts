import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../support/redis-server.js'
import { expectRefusal, expectSuccess } from './operations-table.js'
import { type Service, startService } from './payments-service.js'
import { openGround } from './redis-ground.js'

const PATH = '/api/service/payout/create'
const BODY = { amount: 5_000, currency: 'EUR' }

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

test('a name that nobody used has run 0 times', async () => {
  const { status, json } = await service.send('/demo/operations/nobody', { method: 'GET' })
  expect([status, json]).toEqual([200, { name: 'nobody', runs: 0 }])
})

test('ten requests of one operation, and a retry, are one run', async () => {
  const { name, headers } = named()
  const request = { body: BODY, key: randomUUID(), headers }
  await Promise.all(Array.from({ length: 10 }, () => service.send(PATH, request)))
  await service.idle()
  expectSuccess(await service.send(PATH, request))
  expect(await runs(name)).toBe(1)
})

test('without a key, each request is a run', async () => {
  const { name, headers } = named()
  await Promise.all(Array.from({ length: 3 }, () => service.send(PATH, { body: BODY, headers })))
  expect(await runs(name)).toBe(3)
})

test('a run that fails is not counted', async () => {
  const { name, headers } = named()
  const key = randomUUID()
  expectRefusal(await service.send(PATH, { body: { ...BODY, amount: -1 }, key, headers }), 'validation_failed', 400)
  expect(await runs(name)).toBe(0)
  const order = { body: { orderId: 'ord_unknown' }, headers }
  expectRefusal(await service.send('/api/service/order/expire', order), 'entry_not_found', 404)
  expect(await runs(name)).toBe(0)
})

test('the name does not count when two requests are compared', async () => {
  const key = randomUUID()
  const first = named()
  const second = named()
  await service.send(PATH, { body: BODY, key, headers: first.headers })
  const retry = await service.send(PATH, { body: BODY, key, headers: second.headers })
  expect(retry.headers.get('idempotent-replayed')).toBe('true')
  expect([await runs(first.name), await runs(second.name)]).toEqual([1, 0])
})

test("a merchant's count is not another's", async () => {
  const { name, headers } = named()
  await service.send(PATH, { body: BODY, headers })
  expect([await runs(name), await runs(name, 'demo_globex')]).toEqual([1, 0])
})

test('processes on one Redis count together: ten operations are ten runs, and one that all send is one', async () => {
  const redis = await startRedis()
  const grounds = [await openGround(redis), await openGround(redis)]
  const services = await Promise.all(grounds.map((ground) => startService(ground)))
  onTestFinished(async () => {
    await Promise.all(services.map((each) => each.stop()))
    await Promise.all(grounds.map((ground) => ground.close()))
    await redis.close()
  })
  const own = named()
  const shared = { ...named(), key: randomUUID() }
  await Promise.all(
    Array.from({ length: 10 }, async (_, i) => {
      const each = services[i % 2] as Service
      await each.send(PATH, { body: BODY, key: randomUUID(), headers: own.headers })
      await each.send(PATH, { body: BODY, key: shared.key, headers: shared.headers })
    }),
  )
  await Promise.all(services.map((each) => each.idle()))
  const counts = [own, shared].map(({ name }) => services[0]?.send(`/demo/operations/${name}`, { method: 'GET' }))
  expect((await Promise.all(counts)).map((count) => count?.json.runs)).toEqual([10, 1])
})

test.each(['', 'a b', 'ü', 'a'.repeat(65)])('the name %j is refused before the key is claimed', async (name) => {
  const key = randomUUID()
  const headers = { 'x-demo-operation': Buffer.from(name).toString('latin1') }
  expectRefusal(await service.send(PATH, { body: BODY, key, headers }), 'operation_name_invalid', 400)
  expect(service.log.filter((line) => line.key === key)).toEqual([])
})

test('a name of 64 characters is taken', async () => {
  const name = 'Az0_-'.repeat(13).slice(0, 64)
  await service.send(PATH, { body: BODY, headers: { 'x-demo-operation': name } })
  expect(await runs(name)).toBe(1)
})

test.each(['a.b', 'a'.repeat(65)])('/demo/operations/%s is refused', async (name) => {
  const refused = await service.send(`/demo/operations/${name}`, { method: 'GET' })
  expectRefusal(refused, 'operation_name_invalid', 400)
})

test('/demo/operations takes GET only, of a merchant', async () => {
  expectRefusal(await service.send('/demo/operations/name'), 'method_not_allowed', 405)
  expectRefusal(await service.send('/demo/operations/name', { method: 'GET', apiKey: '' }), 'unauthenticated', 401)
})

function named() {
  const name = randomUUID()
  return { name, headers: { 'x-demo-operation': name } }
}

async function runs(name: string, apiKey = 'demo_acme'): Promise<number> {
  return (await service.send(`/demo/operations/${name}`, { method: 'GET', apiKey })).json.runs
}
