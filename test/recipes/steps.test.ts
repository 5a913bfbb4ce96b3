import { createHmac } from 'node:crypto'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test, vi } from 'vitest'
import { ordersApp } from '../../examples/recipes/steps/express.js'
import { ordersServer } from '../../examples/recipes/steps/fastify.js'
import type { Others } from '../../examples/recipes/steps/order.js'
import { orderReceiver } from '../../examples/recipes/steps/webhook.js'
import { processorOf } from '../../examples/recipes/steps/worker.js'
import { served } from './served.js'

const ORDER = { id: 'order-1', cents: 4_200 }

/** The carrier does not answer the first time. */
function others() {
  const keys: string[] = []
  const charge = vi.fn(async (_order: unknown, key: string) => {
    keys.push(key)
    return { id: `ch_${keys.length}` }
  })
  const mail = vi.fn(async () => {})
  const book = vi.fn(async (_charge: string, key: string) => {
    keys.push(key)
    if (book.mock.calls.length === 1) throw new Error('The carrier did not answer.')
    return { parcel: 'p_1' }
  })
  return { keys, charge, book, mail } satisfies Others & { keys: string[] }
}

const DONE = { charge: 'ch_1', parcel: 'p_1' }

/** The retry charges nothing again, and books the parcel under the same key. */
function expectResumed({ keys, charge, book, mail }: ReturnType<typeof others>): void {
  expect([charge, book, mail].map(({ mock }) => mock.calls.length)).toEqual([1, 2, 1])
  expect(keys[1]).toBe(keys[2])
  expect(book.mock.calls.map(([id]) => id)).toEqual(['ch_1', 'ch_1'])
}

describe('an order of three steps whose second one fails goes on after the charge', () => {
  test('on Express', async () => {
    const parts = others()
    vi.spyOn(console, 'error').mockReturnValue()
    const { post } = await served(ordersApp(new MemoryStore(), parts))
    const order = { path: '/orders', body: ORDER }
    expect(await post(order)).toMatchObject({ status: 500 })
    const second = await post(order)
    expect([second.status, JSON.parse(second.text)]).toEqual([201, DONE])
    expect(await post(order)).toMatchObject({ status: 201, replayed: true })
    expectResumed(parts)
  })

  test('on Fastify', async () => {
    const parts = others()
    const app = await ordersServer(new MemoryStore(), parts)
    const send = () =>
      app.inject({ method: 'POST', url: '/orders', payload: ORDER, headers: { 'idempotency-key': 'order-1' } })
    expect((await send()).statusCode).toBe(500)
    const second = await send()
    expect([second.statusCode, second.json()]).toEqual([201, DONE])
    expectResumed(parts)
    await app.close()
  })

  test('in a worker, whose queue runs it again', async () => {
    const parts = others()
    const processor = processorOf(new MemoryStore(), parts)
    await expect(processor({ data: ORDER })).rejects.toThrow('The carrier')
    expect(await processor({ data: ORDER })).toEqual(DONE)
    expectResumed(parts)
  })

  test('in a webhook, whose sender sends it again', async () => {
    const parts = others()
    const body = JSON.stringify({ id: 'evt_1', type: 'order_placed', payload: ORDER })
    const signature = createHmac('sha256', 'secret').update(body).digest('hex')
    const isSigned = (raw: Buffer) => createHmac('sha256', 'secret').update(raw).digest('hex') === signature
    const receiver = orderReceiver(new MemoryStore(), parts, isSigned)
    const { origin } = await served((req, res) => receiver(req, res))
    const deliver = async () =>
      (await fetch(`${origin}/hooks`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })).status
    expect([await deliver(), await deliver(), await deliver()]).toEqual([500, 200, 200])
    expectResumed(parts)
  })
})
