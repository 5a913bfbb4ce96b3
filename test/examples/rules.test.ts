import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { memoryLedger } from '../../examples/payments/ledger.js'
import { type Service, startService } from './payments-service.js'

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

const post = async (path: string, body: object, apiKey = 'demo_acme') =>
  service.send(`/api/service/${path}`, { body, apiKey })

const create = async (path: string, body: object) => {
  const { status, json } = await post(path, body)
  expect([path, status]).toEqual([path, 201])
  return json
}

const newOrder = (amount = 1_000) => create('order/create', { amount, currency: 'EUR' })

describe('refunds', () => {
  test('take from an order until nothing is left', async () => {
    const { id: orderId } = await newOrder(1_000)
    const refund = await create('refund/create', { orderId, amount: 600 })
    expect(refund).toMatchObject({ orderId, amount: 600, currency: 'EUR', status: 'pending' })
    const tooMuch = await post('refund/create', { orderId, amount: 401 })
    expect([tooMuch.status, tooMuch.json.code]).toEqual([422, 'refund_exceeds_order'])
    await create('refund/create', { orderId, amount: 400 })
    expect((await post('refund/create', { orderId, amount: 1 })).json.code).toBe('refund_exceeds_order')
  })

  test('that race for the same money: only what is left is refunded', async () => {
    const { id: orderId } = await newOrder(1_000)
    const all = await Promise.all(Array.from({ length: 10 }, () => post('refund/create', { orderId, amount: 300 })))
    expect(all.filter(({ status }) => status === 201)).toHaveLength(3)
    expect(all.filter(({ status }) => status === 422)).toHaveLength(7)
  })

  test('are not made for an expired order', async () => {
    const { id: orderId } = await newOrder()
    await post('order/expire', { orderId })
    expect((await post('refund/create', { orderId, amount: 1 })).json).toMatchObject({
      status: 422,
      code: 'order_expired',
    })
  })
})

describe('what has ended stays so', () => {
  test('an order expires once', async () => {
    const { id: orderId } = await newOrder()
    const expired = await post('order/expire', { orderId })
    expect(expired.json).toMatchObject({ id: orderId, status: 'expired', expiredAt: expect.any(String) })
    expect((await post('order/expire', { orderId })).json).toMatchObject({ status: 422, code: 'order_expired' })
  })

  test('a checkout session expires once', async () => {
    const { id: sessionId, status } = await create('checkout/session/create', {
      amount: 100,
      currency: 'DKK',
      successUrl: 'https://shop.example/thanks',
    })
    expect(status).toBe('open')
    expect((await post('checkout/session/expire', { sessionId })).json.status).toBe('expired')
    expect((await post('checkout/session/expire', { sessionId })).json).toMatchObject({
      status: 422,
      code: 'session_expired',
    })
  })

  test('a deleted customer can neither be updated, nor deleted, nor order', async () => {
    const { id: customerId } = await create('customer/create', { name: 'Grace', email: 'grace@example.com' })
    const deleted = await post('customer/delete', { customerId })
    expect(deleted.json).toMatchObject({ id: customerId, deletedAt: expect.any(String) })
    for (const [path, body] of [
      ['customer/update', { customerId, name: 'Ada' }],
      ['customer/delete', { customerId }],
      ['order/create', { amount: 1, currency: 'EUR', customerId }],
    ] as const) {
      expect((await post(path, body)).json).toMatchObject({ status: 422, code: 'customer_deleted' })
    }
  })

  test('a deleted webhook subscription is gone', async () => {
    const subscription = { url: 'https://shop.example/webhooks', events: ['merchant_updated'] }
    const { id: subscriptionId } = await create('webhook-subscription/create', subscription)
    expect((await post('webhook-subscription/delete', { subscriptionId })).json).toEqual({
      id: subscriptionId,
      deleted: true,
    })
    for (const path of ['webhook-subscription/update', 'webhook-subscription/delete']) {
      const change = path.endsWith('update') ? { url: 'https://shop.example/new' } : {}
      expect((await post(path, { subscriptionId, ...change })).status).toBe(404)
    }
  })
})

describe('updates change what they name', () => {
  test('of a customer', async () => {
    const before = await create('customer/create', { name: 'Grace', email: 'grace@example.com', country: 'DK' })
    const { json } = await post('customer/update', { customerId: before.id, email: 'admiral@example.com' })
    expect(json).toEqual({ ...before, email: 'admiral@example.com', updatedAt: expect.any(String) })
  })

  test('of a webhook subscription, whose secret no answer shows', async () => {
    const secret = `whsec_${'A'.repeat(32)}`
    const given = { url: 'https://shop.example/webhooks', events: ['merchant_updated'] }
    const before = await create('webhook-subscription/create', given)
    expect(before).toMatchObject({ ...given, signed: false })
    const { bytes, json } = await post('webhook-subscription/update', { subscriptionId: before.id, secret })
    expect(json).toEqual({ ...before, signed: true, updatedAt: expect.any(String) })
    expect(bytes.toString()).not.toContain('whsec_')
  })

  test.each(['customer/update', 'webhook-subscription/update'])('%s without a change is refused', async (path) => {
    const { customerId, subscriptionId } = await service.sample(`/api/service/${path}`)
    const { json } = await post(path, customerId === undefined ? { subscriptionId } : { customerId })
    expect(json).toMatchObject({
      status: 400,
      errors: [{ path: 'body', message: 'Name at least one field to change' }],
    })
  })
})

describe('FX', () => {
  test.each([
    ['EUR', 'USD', 100_000, 108_000],
    ['USD', 'EUR', 10_800, 10_000],
    ['EUR', 'JPY', 10_000, 16_300],
    ['JPY', 'EUR', 16_300, 10_000],
    ['EUR', 'GBP', 99, 84],
  ])('%s to %s: minor units of both sides', async (sellCurrency, buyCurrency, sellAmount, buyAmount) => {
    const conversion = await create('fx/execute', { sellCurrency, buyCurrency, sellAmount })
    expect(conversion).toMatchObject({ sellCurrency, buyCurrency, sellAmount, buyAmount, rate: expect.any(Number) })
  })

  test('an amount that buys nothing is refused', async () => {
    const { json } = await post('fx/execute', { sellCurrency: 'JPY', buyCurrency: 'EUR', sellAmount: 0.5 })
    expect(json.status).toBe(400)
    const tiny = await post('fx/execute', { sellCurrency: 'EUR', buyCurrency: 'JPY', sellAmount: 0 })
    expect(tiny.json.status).toBe(400)
    const nothing = await post('fx/execute', { sellCurrency: 'SEK', buyCurrency: 'JPY', sellAmount: 1 })
    expect(nothing.json).toMatchObject({ status: 422, code: 'amount_too_small' })
  })

  test('into the same currency is refused', async () => {
    const { json } = await post('fx/execute', { sellCurrency: 'EUR', buyCurrency: 'EUR', sellAmount: 100 })
    expect(json.errors).toEqual([{ path: 'buyCurrency', message: 'Must differ from sellCurrency' }])
  })
})

describe('entries', () => {
  test.each([
    ['order/expire', 'orderId', 'ord_unknown'],
    ['refund/create', 'orderId', 'ord_unknown'],
    ['checkout/session/expire', 'sessionId', 'cs_unknown'],
    ['customer/delete', 'customerId', 'cus_unknown'],
    ['customer/update', 'customerId', 'cus_unknown'],
    ['order/create', 'customerId', 'cus_unknown'],
    ['webhook-subscription/delete', 'subscriptionId', 'whs_unknown'],
    ['webhook-subscription/update', 'subscriptionId', 'whs_unknown'],
  ])('%s of one that is not there: 404', async (path, field, id) => {
    const body = { ...(await service.sample(`/api/service/${path}`)), [field]: id }
    const { json } = await post(path, body)
    expect(json).toMatchObject({ status: 404, code: 'entry_not_found' })
  })

  test("of one merchant are not another's", async () => {
    const { id: orderId } = await newOrder()
    expect((await post('order/expire', { orderId }, 'demo_globex')).status).toBe(404)
    expect((await post('order/expire', { orderId })).status).toBe(200)
  })

  test('have an id with the prefix of their kind, and the time of their creation', async () => {
    const { json } = await service.send('/operations', { method: 'GET' })
    for (const { path, sample } of json) {
      const answer = (await service.send(path, { body: sample })).json
      expect(answer.id).toMatch(/^(bpo|cs|cus|fx|ord|po|ref|sub|whs)_[0-9a-f]{24}$/)
      if (answer.deleted !== true) expect(new Date(answer.createdAt).toISOString()).toBe(answer.createdAt)
    }
  })
})

test('a checkout session that ran out of time has expired', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { sessionId } = await service.sample('/api/service/checkout/session/expire')
  vi.setSystemTime(Date.now() + 30 * 60_000)
  const { json } = await post('checkout/session/expire', { sessionId })
  vi.useRealTimers()
  expect(json).toMatchObject({ status: 422, code: 'session_expired' })
})

test("transactions of one merchant come one after the other, and do not wait for another merchant's", async () => {
  const ledger = memoryLedger()
  const steps: string[] = []
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const first = ledger.transaction('mer_acme', async () => {
    await gate
    steps.push('acme: first')
  })
  const second = ledger.transaction('mer_acme', async () => void steps.push('acme: second'))
  await ledger.transaction('mer_globex', async () => void steps.push('globex'))
  open()
  await Promise.all([first, second])
  expect(steps).toEqual(['globex', 'acme: first', 'acme: second'])
})

test('a transaction of the ledger that fails leaves the books as they were', async () => {
  const ledger = memoryLedger()
  const subaccount = { id: 'sub_1', name: 'Reserve', currency: 'EUR', createdAt: new Date(0).toISOString() } as const
  await ledger.transaction('mer_acme', async (books) => books.put('subaccount', subaccount))
  const failing = ledger.transaction('mer_acme', async (books) => {
    books.put('subaccount', { ...subaccount, id: 'sub_2' })
    books.delete('subaccount', 'sub_1')
    expect(await books.get('subaccount', 'sub_1')).toBeUndefined()
    throw new Error('in the middle')
  })
  await expect(failing).rejects.toThrow('in the middle')
  await ledger.transaction('mer_acme', async (books) => {
    expect(await books.get('subaccount', 'sub_1')).toEqual(subaccount)
    expect(await books.get('subaccount', 'sub_2')).toBeUndefined()
  })
})
