// The tests of payouts-app.ts, for Vitest; those of an application of your own look the same.
import { MemoryStore } from 'once-per-key/memory'
import supertest from 'supertest'
import { afterEach, expect, test, vi } from 'vitest'
import { payoutsApp } from './payouts-app.js'

let idle: () => Promise<void>

/** A new store for each test: no key is known from another. */
function start() {
  const bank = { transfer: vi.fn(async () => ({ id: 'po_1' })) }
  const { app, once } = payoutsApp({ store: new MemoryStore(), bank })
  idle = once.idle
  const post = (key: string, amount = 100) =>
    supertest(app)
      .post('/payouts')
      .set('Authorization', 'Bearer demo_acme')
      .set('Idempotency-Key', key)
      .send({ amount })
  return { bank, post }
}

afterEach(() => idle())

test('a retry is given the first answer, and pays nothing', async () => {
  const { bank, post } = start()
  const first = await post('order-1').expect(201)
  const retry = await post('order-1').expect(201).expect('Idempotent-Replayed', 'true')
  expect(retry.body).toEqual(first.body)
  expect(bank.transfer).toHaveBeenCalledTimes(1)
})

test('another amount under the same key is refused', async () => {
  const { bank, post } = start()
  await post('order-1').expect(201)
  const refused = await post('order-1', 200).expect(409)
  expect(refused.body.code).toBe('mismatched')
  expect(bank.transfer).toHaveBeenCalledTimes(1)
})

test('after a failure the key is free, and the bank is asked under the same key of its own', async () => {
  const { bank, post } = start()
  bank.transfer.mockRejectedValueOnce(Object.assign(new Error('The bank is closed'), { status: 502 }))
  await post('order-1').expect(502)
  await post('order-1').expect(201)
  const [first, second] = bank.transfer.mock.calls
  expect(second).toEqual(first)
})

test('of two at once, one pays', async () => {
  const { bank, post } = start()
  let answer = (_payout: { id: string }) => {}
  bank.transfer.mockReturnValueOnce(
    new Promise((resolve) => {
      answer = resolve
    }),
  )

  const first = post('order-1').then((response) => response) // supertest sends when it is waited for
  await vi.waitFor(() => expect(bank.transfer).toHaveBeenCalled())
  const second = await post('order-1').expect(409).expect('Retry-After', '1')
  expect(second.body.code).toBe('in_flight')

  answer({ id: 'po_1' })
  expect((await first).status).toBe(201)
  expect(bank.transfer).toHaveBeenCalledTimes(1)
})
