import { HttpRequest, HttpResponse } from '@azure/functions'
import { idempotency, singleTenant } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// The requests of Azure Functions have no `signal`, and its responses no `statusText`: what was sent was never stored, and its key stayed
// in flight.

function payout(amount: number): Request {
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'order-1' }
  const body = { string: JSON.stringify({ amount }) }
  return new HttpRequest({ method: 'POST', url: 'https://api.example/payouts', headers, body }) as unknown as Request
}

test('a retry gets the answer of the first request, and another body is told so', async () => {
  const events: string[] = []
  const once = idempotency({
    store: new MemoryStore(),
    scope: singleTenant,
    inFlightWaitMs: 1_000,
    onEvent: ({ type }) => void events.push(type),
  })
  const handle = once(async (request) => {
    const jsonBody = { paid: (await request.json()).amount }
    return new HttpResponse({ status: 201, jsonBody }) as unknown as Response
  })
  const pay = async (amount: number) => {
    // As the runtime takes what a handler returns.
    const { status, headers, body } = new HttpResponse((await handle(payout(amount))) as never)
    return [status, await new Response(body as never).json(), headers.get('idempotent-replayed')]
  }
  const [first, second] = await Promise.all([pay(5), pay(5)])
  await once.idle()
  expect([first, second]).toEqual([
    [201, { paid: 5 }, null],
    [201, { paid: 5 }, 'true'],
  ])
  expect(await pay(6)).toMatchObject([409, { code: 'mismatched' }, null])
  expect(events.filter((type) => type !== 'in_flight')).toEqual(['claimed', 'completed', 'replayed', 'mismatched'])
})
