import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { payouts } from '../../examples/recipes/late-retries.js'
import { counted, served } from './served.js'

const HOUR_MS = 3_600_000

test('a retry after 30 hours is refused and told for how long records are kept; its living record is replayed', async () => {
  const { handler, runs } = counted()
  const { post } = await served(payouts(new MemoryStore(), handler))
  const sent = (agoMs: number) => ({
    headers: { 'Repeatability-First-Sent': new Date(Date.now() - agoMs).toUTCString() },
  })
  const late = await post(sent(30 * HOUR_MS))
  expect([late.status, JSON.parse(late.text)]).toMatchObject([409, { code: 'key_expired', retentionSeconds: 86_400 }])
  expect((await post(sent(0))).status).toBe(201)
  expect(await post(sent(30 * HOUR_MS))).toMatchObject({ status: 201, replayed: true })
  expect((await post({ key: 'order-2' })).status).toBe(201)
  expect(runs()).toBe(2)
})

test.each(['yesterday', new Date(Date.now() + HOUR_MS).toUTCString()])(
  'a date that is invalid or in the future is refused: %s',
  async (date) => {
    const { handler, runs } = counted()
    const { post } = await served(payouts(new MemoryStore(), handler))
    const refused = await post({ headers: { 'Repeatability-First-Sent': date } })
    expect([refused.status, JSON.parse(refused.text).code, runs()]).toEqual([400, 'key_invalid', 0])
  },
)
