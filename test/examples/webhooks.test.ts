import { randomBytes, randomUUID } from 'node:crypto'
import type { Store } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { parseWebhookEvent, standardWebhooks, webhookReceiver } from 'once-per-key/webhooks'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { memoryLedger } from '../../examples/payments/ledger.js'
import { gate } from '../support/gate.js'
import { startSubscriber } from './subscriber.js'
import { startWithWebhooks } from './webhooks-service.js'

const DAY_MS = 24 * 3_600_000
const SUBACCOUNT = ['/api/service/subaccount/create', { name: 'Reserve', currency: 'GBP' }] as const
const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`

describe('an event', () => {
  test.each(['merchant_updated', 'mandate_setup_started'] as const)(
    'of type %s is delivered to its path, as documented and whole',
    async (type) => {
      const service = await startWithWebhooks()
      const subscriber = await startSubscriber()
      await service.subscribe(`${subscriber.url}/hooks/`, { events: [type] })
      const answer = await service.post(`/demo/events/${type}`)
      expect([answer.status, answer.json]).toEqual([202, { id: expect.any(String), type, subscriptions: 1 }])
      const [delivery] = await subscriber.reached(1)
      expect(delivery?.path).toBe(`/hooks/api/service/webhook-event/${type}`)
      expect(delivery?.headers['content-type']).toBe('application/json')
      expect(delivery?.headers).not.toHaveProperty('webhook-signature')
      expect(parseWebhookEvent(delivery?.event)).toMatchObject({ id: answer.json.id, type })
      expect(delivery?.event).toMatchObject({ payload: type === 'merchant_updated' ? { id: 'mer_acme' } : {} })
    },
  )

  test('of an unknown type cannot be fired, nor one by nobody', async () => {
    const service = await startWithWebhooks()
    expect((await service.post('/demo/events/toString')).json).toMatchObject({ status: 404 })
    expect((await service.post('/demo/events/merchant_updated', undefined, { apiKey: '' })).status).toBe(401)
  })

  test('goes to those who subscribed to its type, of its merchant alone', async () => {
    const service = await startWithWebhooks()
    const [both, other, theirs] = await Promise.all([startSubscriber(), startSubscriber(), startSubscriber()])
    await service.subscribe(both.url, { events: ['merchant_updated', 'mandate_setup_started'] })
    await service.subscribe(other.url, { events: ['mandate_setup_started'] })
    await service.subscribe(theirs.url, {}, { apiKey: 'demo_globex' })
    expect((await service.fire()).subscriptions).toBe(1)
    expect((await service.fire('mandate_setup_started')).subscriptions).toBe(2)
    await service.logged('webhook delivered', 3)
    expect([both, other, theirs].map(({ delivered }) => delivered.map(({ event }) => event.type).sort())).toEqual([
      ['mandate_setup_started', 'merchant_updated'],
      ['mandate_setup_started'],
      [],
    ])
  })
})

describe('a delivery', () => {
  test('is tried again until it is acknowledged: the same event each time, signed anew', async () => {
    const service = await startWithWebhooks()
    const secret = newSecret()
    const answers = [500, 302, 409, 204]
    const subscriber = await startSubscriber((res, nth) => {
      res.writeHead(answers[nth - 1] ?? 500, { Location: '/elsewhere' }).end()
    })
    await service.subscribe(subscriber.url, { secret })
    const { id } = await service.fire()
    const [line] = await service.logged('webhook delivered')
    expect(line).toMatchObject({ event: id, tries: 4 })
    expect(subscriber.delivered).toHaveLength(4)
    for (const { path, headers, text } of subscriber.delivered) {
      expect(path).toBe('/api/service/webhook-event/merchant_updated')
      expect(headers['webhook-id']).toBe(id)
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toMatchObject({ id })
      const forged = () => new Webhook(newSecret()).verify(text, headers as Record<string, string>)
      expect(forged).toThrow()
    }
    expect(new Set(subscriber.delivered.map(({ text }) => text)).size).toBe(1)
    const [first, second, third] = (await service.logged('webhook failed')).map(({ pauseMs }) => Number(pauseMs))
    expect(second).toBeGreaterThan(first as number)
    expect(third).toBeGreaterThan(second as number)
  })

  test('that is not answered in time is tried again', async () => {
    const service = await startWithWebhooks({}, { firstPauseMs: 1, timeLimitMs: 50 })
    const subscriber = await startSubscriber((res, nth) => void (nth > 1 && res.end()))
    await service.subscribe(subscriber.url)
    await service.fire()
    await service.logged('webhook delivered')
    expect((await service.logged('webhook failed'))[0]).toMatchObject({ tries: 1, reason: 'TimeoutError' })
  })

  test('is over with the status: a body that never ends is not read', async () => {
    const service = await startWithWebhooks({}, { firstPauseMs: DAY_MS })
    const closed = gate()
    const subscriber = await startSubscriber((res) => {
      res.once('close', () => closed.open())
      const pour = (): void => {
        if (!res.destroyed) res.write('x'.repeat(65_536), () => setImmediate(pour))
      }
      pour()
    })
    await service.subscribe(subscriber.url)
    await service.fire()
    await service.logged('webhook delivered')
    await closed.opened
  })

  test('is given up in the end, with an error in the log', async () => {
    const service = await startWithWebhooks({}, { firstPauseMs: 0.001 })
    const subscriber = await startSubscriber((res) => res.writeHead(500).end())
    await service.subscribe(subscriber.url)
    const { id } = await service.fire()
    expect((await service.logged('webhook given up'))[0]).toMatchObject({ level: 50, event: id, tries: 11 })
    expect(subscriber.delivered).toHaveLength(11)
    expect(await service.sender.stop()).toBe(0)
  })

  test('to one that does not answer holds up nobody else, and takes few connections', async () => {
    const service = await startWithWebhooks()
    const [silent, quick] = await Promise.all([startSubscriber(() => {}), startSubscriber()])
    await service.subscribe(silent.url)
    await service.subscribe(quick.url)
    for (let i = 0; i < 10; i++) await service.fire()
    await quick.reached(10)
    await service.logged('webhook delivered', 10)
    expect(silent.delivered).toHaveLength(4)
  })

  test('waits for its turn while others are under way, and gets it', async () => {
    const held = gate()
    const service = await startWithWebhooks()
    const subscriber = await startSubscriber((res) => void held.opened.then(() => res.end()))
    await service.subscribe(subscriber.url)
    for (let i = 0; i < 10; i++) await service.fire()
    await subscriber.reached(4)
    held.open()
    await service.logged('webhook delivered', 10)
  })

  test('goes where its subscription points at the time', async () => {
    const moved = await startSubscriber()
    const subscriber = await startSubscriber((res) => res.writeHead(500).end())
    const service = await startWithWebhooks({}, { firstPauseMs: 5 })
    const subscriptionId = await service.subscribe(subscriber.url)
    const { id } = await service.fire()
    await subscriber.reached(1)
    await service.post('/api/service/webhook-subscription/update', { subscriptionId, url: moved.url })
    expect((await moved.reached(1))[0]?.event.id).toBe(id)
  })
})

describe('a deleted subscription', () => {
  test('gets nothing, pending deliveries included', async () => {
    const held = gate()
    const subscriber = await startSubscriber((res) => void held.opened.then(() => res.writeHead(500).end()))
    const service = await startWithWebhooks()
    const subscriptionId = await service.subscribe(subscriber.url)
    await service.fire()
    await subscriber.reached(1)
    await service.post('/api/service/webhook-subscription/delete', { subscriptionId })
    held.open()
    await service.logged('webhook unsubscribed')
    expect((await service.fire()).subscriptions).toBe(0)
    expect(subscriber.delivered).toHaveLength(1)
    expect(await service.sender.stop()).toBe(0)
  })
})

describe('a subscription is refused', () => {
  test.each([
    ['url', 'ftp://shop.example'],
    ['url', 'http://user:secret@shop.example'],
    ['url', 'http://shop.example/?a=1'],
    ['url', 'http://shop.example/#here'],
    ['url', 'shop.example'],
    ['secret', 'whsec_'],
    ['secret', `whsec_${randomBytes(23).toString('base64')}`],
    ['secret', `whsec_${randomBytes(65).toString('base64')}`],
    ['secret', `whsec_${'A'.repeat(33)}`],
    ['secret', randomBytes(32).toString('base64')],
  ])('with the %s %s', async (field, value) => {
    const service = await startWithWebhooks()
    const body = { url: 'http://shop.example', events: ['merchant_updated'], [field]: value }
    const { json } = await service.post('/api/service/webhook-subscription/create', body)
    expect(json).toMatchObject({ status: 400, errors: [{ path: field }] })
  })
})

describe('an operation', () => {
  test.each([
    ['subaccount/create', SUBACCOUNT[1], 'merchant_updated', { id: 'mer_acme' }],
    [
      'customer/create',
      { name: 'Grace', email: 'grace@example.com' },
      'mandate_setup_started',
      { userNotificationEmail: 'grace@example.com' },
    ],
  ])('%s tells its event once, however often it is sent', async (path, body, type, payload) => {
    const service = await startWithWebhooks()
    const subscriber = await startSubscriber()
    await service.subscribe(subscriber.url, { events: [type] })
    const key = randomUUID()
    const answers = []
    for (let i = 0; i < 3; i++) answers.push(await service.post(`/api/service/${path}`, body, { key }))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    // Another operation's event is behind it.
    await service.post(`/api/service/${path}`, body)
    await service.logged('webhook delivered', 2)
    const ids = subscriber.delivered.map(({ event }) => event.id)
    expect(new Set(ids).size).toBe(2)
    expect(ids).toHaveLength(2)
    expect(parseWebhookEvent(subscriber.delivered[0]?.event)).toMatchObject({ type, payload })
  })

  test('that fails tells nothing', async () => {
    const service = await startWithWebhooks()
    const subscriber = await startSubscriber()
    await service.subscribe(subscriber.url)
    await service.post(SUBACCOUNT[0], { name: '' }, { key: 'k' })
    await service.post(...SUBACCOUNT, { key: 'k' })
    await service.logged('webhook delivered')
    expect(subscriber.delivered).toHaveLength(1)
  })

  test('that this process runs again tells nothing more', async () => {
    const clock = { now: 0 }
    const { store, completing } = losesFirstAnswer(new MemoryStore({ now: () => clock.now }))
    const service = await startWithWebhooks({ store })
    const subscriber = await startSubscriber()
    await service.subscribe(subscriber.url)
    void service.post(...SUBACCOUNT, { key: 'k' }).catch(() => null)
    await completing
    clock.now += 60_000
    expect((await service.post(...SUBACCOUNT, { key: 'k' })).status).toBe(201)
    const last = await service.fire()
    await service.logged('webhook delivered', 2)
    expect(subscriber.delivered).toHaveLength(2)
    expect(subscriber.delivered.map(({ event }) => event.id)).toContain(last.id)
  })

  test('that a naive handler runs again tells another event: it has done another thing', async () => {
    const clock = { now: 0 }
    const { store, completing } = losesFirstAnswer(new MemoryStore({ now: () => clock.now }))
    const service = await startWithWebhooks({ store })
    const subscriber = await startSubscriber()
    await service.subscribe(subscriber.url)
    const sent = { key: 'k', headers: { 'x-demo-handler': 'naive' } }
    void service.post(...SUBACCOUNT, sent).catch(() => null)
    await completing
    clock.now += 60_000
    expect((await service.post(...SUBACCOUNT, sent)).status).toBe(201)
    const [one, two] = await subscriber.reached(2)
    expect(two?.event.id).not.toBe(one?.event.id)
  })

  test('that another process runs again tells the same event, under the same id', async () => {
    const clock = { now: 0 }
    const inner = new MemoryStore({ now: () => clock.now })
    const ledger = memoryLedger()
    const { store, completing } = losesFirstAnswer(inner)
    const first = await startWithWebhooks({ store, ledger })
    const second = await startWithWebhooks({ store: inner, ledger })
    const subscriber = await startSubscriber()
    await second.subscribe(subscriber.url)
    void first.post(...SUBACCOUNT, { key: 'k' }).catch(() => null)
    await completing
    await subscriber.reached(1)
    clock.now += 60_000
    expect((await second.post(...SUBACCOUNT, { key: 'k' })).status).toBe(201)
    const [one, two] = await subscriber.reached(2)
    expect(two?.text).toBe(one?.text)
  })
})

test('a receiver that fails first handles each event to success, once', async () => {
  const service = await startWithWebhooks()
  const secret = newSecret()
  const runs = new Map<string, number>()
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'payments',
    verify: standardWebhooks({ secrets: [secret] }),
    on: {
      merchant_updated({ id }) {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        if (runs.get(id) === 1) throw new Error('not yet')
      },
    },
    onEvent: () => {},
  })
  const { createServer } = await import('node:http')
  const server = createServer((req, res) => receiver(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  // Two subscriptions of one receiver: each event comes twice at least.
  await service.subscribe(`http://127.0.0.1:${port}`, { secret })
  await service.subscribe(`http://127.0.0.1:${port}`, { secret })
  const fired = [await service.fire(), await service.fire(), await service.fire()]
  await service.logged('webhook delivered', 6)
  expect(runs).toEqual(new Map(fired.map(({ id }) => [id, 2])))
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

test('what is pending at the end is counted, and tried no more', async () => {
  const service = await startWithWebhooks({}, { firstPauseMs: DAY_MS / 10_000 })
  const subscriber = await startSubscriber((res, nth) => res.writeHead(nth === 1 ? 200 : 500).end())
  await service.subscribe(subscriber.url)
  await service.fire()
  await service.logged('webhook delivered')
  await service.fire()
  await service.fire()
  await service.logged('webhook failed', 2)
  expect(await service.sender.stop()).toBe(2)
  expect(subscriber.delivered).toHaveLength(3)
})

test('what waits for its turn at the end is counted, and not tried', async () => {
  const held = gate()
  const service = await startWithWebhooks()
  const subscriber = await startSubscriber((res) => void held.opened.then(() => res.writeHead(500).end()))
  await service.subscribe(subscriber.url)
  for (let i = 0; i < 6; i++) await service.fire()
  await subscriber.reached(4)
  const stopped = service.sender.stop()
  held.open()
  expect(await stopped).toBe(6)
  // It waits for tries under way, had any begun since.
  expect(await service.sender.stop()).toBe(6)
  expect(subscriber.delivered).toHaveLength(4)
})

/** A store whose first completion, and the renewals behind it, are never answered: as if its process had died there. */
function losesFirstAnswer(inner: MemoryStore): { readonly store: Store; readonly completing: Promise<void> } {
  const completing = gate()
  let lost: string | undefined
  const store: Store = {
    begin: (key, claim) => inner.begin(key, claim),
    renew: (key, own) => (own.token === lost ? new Promise(() => {}) : inner.renew(key, own)),
    complete(key, own) {
      if (lost !== undefined && own.token !== lost) return inner.complete(key, own)
      lost = own.token
      completing.open()
      return new Promise(() => {})
    },
    release: (key, own) => inner.release(key, own),
  }
  return { store, completing: completing.opened }
}
