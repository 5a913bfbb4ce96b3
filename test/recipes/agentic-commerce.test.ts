import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { checkoutSessions } from '../../examples/recipes/agentic-commerce.js'
import { authenticate } from '../../examples/recipes/merchant.js'
import { counted, served } from './served.js'

test('an endpoint of the protocol follows its rules, and refers to the documentation', async () => {
  const { handler, runs } = counted()
  const app = checkoutSessions({
    authenticate,
    store: new MemoryStore(),
    create: handler,
    update: handler,
    complete: handler,
    cancel: handler,
  })
  const { post } = await served(app)
  const path = '/checkout_sessions'
  const [first, retry] = [await post({ path }), await post({ path })]
  expect([first.status, retry.status, retry.replayed, retry.text]).toEqual([201, 201, true, first.text])
  expect((await post({ path: `${path}/1/complete` })).replayed).toBe(false)
  const other = await post({ path, body: { amount: 7 } })
  expect([other.status, JSON.parse(other.text).code]).toEqual([422, 'idempotency_conflict'])
  expect(other.header('Link')).toBe('<https://developer.example.com/idempotency>; rel="describedby"')
  expect(other.header('Idempotency-Key')).toBe('order-1')
  expect((await post({ path, key: null })).status).toBe(400)
  expect(runs()).toBe(2)
})
