import { universalCommerce } from 'once-per-key'
import { describe, expect, test } from 'vitest'
import type { Handler } from './framework.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { type Sent, serve } from './serve.js'

// What `idempotency_test.py` of github.com/Universal-Commerce-Protocol/conformance asserts (commit fdced3a, January 2026), on
// an application of ours: each of its four operations is sent twice and gets the same status and JSON; with another payload
// it is 409. The requests are written anew.

/** A shop whose answers differ each time, so that a repeated run cannot look like a replay. */
function shop(): Handler {
  let made = 0
  return () => ({ status: 200, json: { id: `chk_${++made}`, status: 'ready_for_complete' } })
}

const checkout = { currency: 'USD', line_items: [{ item: { id: 'bouquet', title: 'Roses' }, quantity: 1 }] }
const payment = { payment_data: { handler_id: 'mock', credential: { token: 'success_token' } } }

interface Operation {
  readonly name: string
  readonly sent: Sent
  /** Absent: that test sends no other payload. */
  readonly other?: unknown
}

const OPERATIONS: readonly Operation[] = [
  {
    name: 'test_idempotency_create',
    sent: { path: '/checkout-sessions', json: checkout },
    other: { ...checkout, currency: 'EUR' },
  },
  {
    name: 'test_idempotency_update',
    sent: { method: 'PUT', path: '/checkout-sessions/chk_0', json: { id: 'chk_0', ...checkout, quantity: 2 } },
    other: { id: 'chk_0', ...checkout, quantity: 3 },
  },
  {
    name: 'test_idempotency_complete',
    sent: { path: '/checkout-sessions/chk_0/complete', json: payment },
    other: { payment_data: { handler_id: 'mock', credential: { token: 'different_token' } } },
  },
  { name: 'test_idempotency_cancel', sent: { path: '/checkout-sessions/chk_0/cancel', bytes: '', headers: {} } },
]

describe.each(FRAMEWORKS)('on $name', (framework) => {
  test.each(OPERATIONS)('$name', async ({ sent, other }) => {
    const { send } = await serve(framework, shop(), { options: { profile: universalCommerce, required: true } })
    const key = crypto.randomUUID()
    const [first, duplicate] = [await send({ ...sent, key }), await send({ ...sent, key })]
    expect([first.status, duplicate.status]).toEqual([200, 200])
    expect(duplicate.json()).toEqual(first.json())
    if (other !== undefined) expect((await send({ ...sent, key, json: other })).status).toBe(409)
    expect((await send({ ...sent, key: crypto.randomUUID() })).json()).not.toEqual(first.json())
  })
})
