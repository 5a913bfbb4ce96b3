import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { isAsPromised, tallyOf } from '../../examples/webhook-receiver/tally.js'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { redisBinary, startRedis } from '../support/redis-server.js'
import { runNode } from '../support/run-node.js'
import { startExample } from './example-process.js'
import { send } from './payments-service.js'
import { startSubscriber } from './subscriber.js'

let example: BuiltExample

beforeAll(async () => {
  redisBinary()
  example = await buildExample({ withRedis: true })
}, 60_000)

afterAll(() => example.remove())

test('SIGTERM with deliveries pending: one line says how many are lost', async () => {
  const subscriber = await startSubscriber((res) => res.writeHead(500).end())
  const { child, origin, log, exit } = await startExample(example)
  await send(`${origin}/api/service/webhook-subscription/create`, {
    body: { url: subscriber.url, events: ['merchant_updated'] },
  })
  for (let i = 0; i < 3; i++) await send(`${origin}/demo/events/merchant_updated`, {})
  await vi.waitFor(() => expect(log().filter(({ msg }) => msg === 'webhook failed')).toHaveLength(3), {
    timeout: 4_000,
  })
  child.kill('SIGTERM')
  expect(await exit()).toBe(0)
  const lines = log().filter(({ pending }) => pending !== undefined)
  expect(lines).toMatchObject([{ msg: 'webhook deliveries are pending, and lost', pending: 3 }])
}, 20_000)

test('with Redis, what was subscribed through one process is told by the other', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.close())
  const variables = { REDIS_URL: redis.url }
  const [one, two] = await Promise.all([startExample(example, variables), startExample(example, variables)])
  const subscriber = await startSubscriber()
  const body = { url: subscriber.url, events: ['merchant_updated'] }
  const { json } = await send(`${one.origin}/api/service/webhook-subscription/create`, { body })
  await send(`${two.origin}/api/service/subaccount/create`, { body: { name: 'Reserve', currency: 'GBP' } })
  expect((await subscriber.reached(1))[0]?.event.type).toBe('merchant_updated')
  await send(`${two.origin}/api/service/webhook-subscription/delete`, { body: { subscriptionId: json.id } })
  expect((await send(`${one.origin}/demo/events/merchant_updated`, {})).json.subscriptions).toBe(0)
}, 20_000)

test('the demo kills the receiver in the middle, and every event is handled once', async () => {
  const { exitCode, stdout, stderr } = await runNode(example.demo)
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toContain('The receiver remembers in Redis.')
  expect(stdout).toContain('The receiver was killed (-9).')
  const rows = [...stdout.matchAll(/^(evt_\S+) +(\d+) +(\d+)$/gm)].map(([, , delivered, handled]) => [
    Number(delivered),
    Number(handled),
  ])
  expect(rows).toHaveLength(12)
  expect(rows.map(([, handled]) => handled)).toEqual(Array(12).fill(1))
  expect(Math.max(...rows.map(([delivered = 0]) => delivered))).toBeGreaterThan(1)
}, 90_000)

test.each([
  ['handled once', ['claimed', 'completed', 'replayed'], { delivered: 2, handled: 1 }, true, true],
  ['handled twice', ['claimed', 'completed', 'claimed', 'completed'], { delivered: 2, handled: 2 }, false, true],
  ['not handled', ['claimed', 'in_flight'], { delivered: 2, handled: 0 }, false, false],
  ['handled, and its line lost', ['claimed', 'replayed'], { delivered: 2, handled: 1 }, true, true],
])('the demo counts an event that was %s', (_name, said, counts, withRedis, withMemory) => {
  const tally = tallyOf('evt_1', [{ msg: 'completed', key: 'evt_2' }, ...said.map((msg) => ({ msg, key: 'evt_1' }))])
  expect(tally).toEqual({ event: 'evt_1', ...counts })
  expect([isAsPromised([tally], true), isAsPromised([tally], false)]).toEqual([withRedis, withMemory])
})
