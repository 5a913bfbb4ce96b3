import { CertainFailure, type IdempotencyContext, singleTenant } from 'once-per-key'
import type { IdempotencyOptions } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { bound } from '../../examples/recipes/binding.js'
import { gate } from '../support/gate.js'

type Options = Partial<IdempotencyOptions<Request>>

/** A service that counts its payouts, and one request of it unless told otherwise. */
function service(pay: (amount: number, idempotency?: IdempotencyContext) => unknown = () => {}, options: Options = {}) {
  let payouts = 0
  const handle = bound(
    async (request, idempotency) => {
      const { amount } = (await request.json()) as { amount: number }
      await pay(amount, idempotency)
      payouts++
      return Response.json({ id: `po_${payouts}` }, { status: 201, headers: { Location: `/payouts/${payouts}` } })
    },
    { store: new MemoryStore(), scope: singleTenant, ...options },
  )
  const send = async (body: string, headers: Record<string, string> = { 'Idempotency-Key': 'order-1001' }) => {
    const init = { method: 'POST', body, headers: { 'Content-Type': 'application/json', ...headers } }
    const response = await handle(new Request('http://localhost/payouts?dry=no', init))
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      code: text === '' ? null : JSON.parse(text).code,
    }
  }
  return { send, payouts: () => payouts, idle: handle.idle }
}

test('a retry is given the first answer, and the handler does not run again', async () => {
  const { send, payouts, idle } = service()
  const first = await send('{"amount":100}')
  const again = await send('{ "amount": 100 }')
  expect([first.status, first.text, first.headers.get('Idempotent-Replayed')]).toEqual([201, '{"id":"po_1"}', null])
  expect([again.status, again.text, again.headers.get('Idempotent-Replayed')]).toEqual([201, '{"id":"po_1"}', 'true'])
  expect(again.headers.get('Location')).toBe('/payouts/1')
  expect(payouts()).toBe(1)
  await idle()
})

test('of two at once one runs, and the other is told to come back', async () => {
  const bank = gate()
  const { send, payouts } = service(() => bank.opened)
  const first = send('{"amount":100}')
  const other = await send('{"amount":100}')
  expect([other.status, other.code, other.headers.get('Retry-After')]).toEqual([409, 'in_flight', '1'])
  bank.open()
  expect((await first).status).toBe(201)
  expect(payouts()).toBe(1)
})

test('another body under the key is refused', async () => {
  const { send, payouts } = service()
  await send('{"amount":100}')
  expect(await send('{"amount":999}')).toMatchObject({ status: 409, code: 'mismatched' })
  expect(payouts()).toBe(1)
})

test('a request without a key passes', async () => {
  const { send, payouts } = service()
  for (let i = 0; i < 2; i++) expect((await send('{"amount":100}', {})).status).toBe(201)
  expect(payouts()).toBe(2)
})

test('an answer too large to keep is sent once, and the operation is not run again', async () => {
  const { send, payouts } = service(undefined, { maxAnswerBytes: 5 })
  expect(await send('{"amount":100}')).toMatchObject({ status: 201, text: '{"id":"po_1"}' })
  expect(await send('{"amount":100}')).toMatchObject({ status: 409, code: 'answer_not_kept' })
  expect(payouts()).toBe(1)
})

test('what a handler throws is passed on; the next attempt is told whether it may have had an effect', async () => {
  const seen: unknown[] = []
  const errors = [new Error('the bank timed out'), new CertainFailure('no such account')]
  const { send } = service((_amount, idempotency) => {
    seen.push(idempotency?.previousOutcome)
    const [error] = errors.splice(0, 1)
    if (error !== undefined) throw error
  })
  await expect(send('{"amount":100}')).rejects.toThrow('the bank timed out')
  await expect(send('{"amount":100}')).rejects.toThrow('no such account')
  expect((await send('{"amount":100}')).status).toBe(201)
  await expect(send('{"amount":100}', { 'Idempotency-Key': 'order-1002' })).resolves.toMatchObject({ status: 201 })
  expect(seen).toEqual(['none', 'unknown', 'unknown', 'none'])
})

test('a certain failure frees the key for a corrected request', async () => {
  const { send } = service((amount) => {
    if (amount > 100) throw new CertainFailure('more than the account holds')
  })
  await expect(send('{"amount":999}')).rejects.toThrow('more than')
  expect((await send('{"amount":100}')).status).toBe(201)
})
