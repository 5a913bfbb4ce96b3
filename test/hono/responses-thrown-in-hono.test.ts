import { Hono } from 'hono'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// Hono sends no Response that is thrown, yet it was recorded as the answer: the first client had an error, and the retry a success.

test('a thrown Response is an error, as in Hono alone, and has left the outcome unknown', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const app = new Hono()
  const told: unknown[] = []
  const thrown = new Response('paid', { status: 201 })
  app.post('/payouts', once, (c) => {
    told.push(c.get('idempotency')?.previousOutcome)
    throw thrown
  })
  const post = () => app.request('/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
  await expect(post()).rejects.toBe(thrown)
  await expect(post()).rejects.toBe(thrown)
  expect(told).toEqual(['none', 'unknown'])
  await once.idle()
})
