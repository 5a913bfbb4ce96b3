import { Hono } from 'hono'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { expect, test } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { gate } from '../support/gate.js'

// A time limit in front may answer while the store is still asked for the key. Hono's handler ran all the same; Hono drops its answer, so
// a retry paid again.

test('a request that was answered while its key was being claimed does not run, and its key is free', async () => {
  const store = failingStore()
  let asked = gate()
  const goOn = gate()
  const seen: string[] = []
  const once = idempotency({ store, scope: singleTenant, onEvent: ({ type }) => void seen.push(type) })
  const app = new Hono()
  app.use(async (c, next) => {
    await Promise.race([next(), asked.opened])
    return c.finalized ? undefined : c.text('too slow', 503)
  })
  app.post('/payouts', once, (c) => {
    seen.push('paid')
    return c.text('paid')
  })
  const post = () => app.request('/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })

  store.next('begin', async (take) => {
    asked.open()
    await goOn.opened
    return take()
  })
  const first = await post()
  expect([first.status, await first.text()]).toEqual([503, 'too slow'])
  goOn.open()
  await once.idle()
  expect(seen).toEqual(['claimed', 'failed'])
  asked = gate()
  const retry = await post()
  expect([retry.status, await retry.text()]).toEqual([200, 'paid'])
})
