import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { isAsPromised, tallyOf } from '../../examples/webhook-receiver/tally.js'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { redisBinary, startRedis } from '../support/redis-server.js'
import { runNode } from '../support/run-node.js'
import { startExample } from './example-process.js'
import { send } from './payments-service.js'
import { startExampleReceiver } from './receiver-process.js'
import { startSubscriber } from './subscriber.js'

let example: BuiltExample

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`

beforeAll(async () => {
  redisBinary()
  example = await buildExample({ clients: ['redis'] })
}, 60_000)

afterAll(() => example.remove())

test('SIGTERM with deliveries pending: one line says how many are lost', async () => {
  const subscriber = await startSubscriber((res) => res.writeHead(500).end())
  const { child, origin, log, exit } = await startExample(example, { DEMO_WEBHOOK_LOOPBACK: 'true' })
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
  const variables = { REDIS_URL: redis.url, DEMO_WEBHOOK_LOOPBACK: 'true' }
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

test('without a redis-server the demo remembers in memory, and every event is handled at least once', async () => {
  vi.stubEnv('PATH', '/nowhere')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { exitCode, stdout, stderr } = await runNode(example.demo)
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toContain('There is no redis-server on the PATH. The receiver remembers in memory')
  expect(stdout).toContain('The receiver was killed (-9).')
  const handled = [...stdout.matchAll(/^evt_\S+ +\d+ +(\d+)$/gm)].map(([, times]) => Number(times))
  expect(handled).toHaveLength(12)
  expect(Math.min(...handled)).toBeGreaterThanOrEqual(1)
}, 90_000)

test('the receiver alone: signed deliveries are handled once, others are refused, and SIGTERM ends it', async () => {
  const secret = newSecret()
  const { url, lines, stop } = await startExampleReceiver(example, { WEBHOOK_SECRET: secret })
  const body = JSON.stringify({ id: 'evt_1', type: 'mandate_setup_started', date: '2026-11-21', payload: {} })
  const post = async (signer: string) => {
    const now = new Date()
    const headers = {
      'content-type': 'application/json',
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      'webhook-signature': new Webhook(signer).sign('evt_1', now, body),
    }
    const path = '/api/service/webhook-event/mandate_setup_started'
    return (await fetch(url + path, { method: 'POST', headers, body })).status
  }
  expect([await post(newSecret()), await post(secret), await post(secret)]).toEqual([401, 200, 200])
  expect((await fetch(url)).status).toBe(404)
  expect(await stop()).toBe(0)
  expect(lines().map(({ msg }) => msg)).toEqual([
    'listening',
    'rejected',
    'claimed',
    'event',
    'completed',
    'replayed',
    'rejected',
  ])
  expect(lines()[0]).toMatchObject({ store: 'memory' })
}, 20_000)

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
