import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { browserApp } from '../../examples/recipes/cors.js'
import { gate } from '../support/gate.js'
import { counted, served } from './served.js'

const SHOP = { Origin: 'https://shop.example' }
const OFFICE = { Origin: 'https://office.example' }

test('a preflight allows the key, and is answered before authentication', async () => {
  const { origin } = await served(browserApp({ store: new MemoryStore(), createPayout: counted().handler }))
  const preflight = await fetch(`${origin}/payouts`, {
    method: 'OPTIONS',
    headers: {
      ...SHOP,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization,content-type,idempotency-key,repeatability-first-sent',
    },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('Access-Control-Allow-Origin')).toBe(SHOP.Origin)
  expect(preflight.headers.get('Access-Control-Allow-Methods')).toContain('POST')
  expect(listed(preflight.headers.get('Access-Control-Allow-Headers'))).toEqual([
    'authorization',
    'content-type',
    'idempotency-key',
    'repeatability-first-sent',
  ])
})

test('a browser may read what a replay and a conflict say', async () => {
  const { opened, open } = gate()
  const payout = counted(() => opened)
  const { post } = await served(browserApp({ store: new MemoryStore(), createPayout: payout.handler }))
  const first = post({ headers: SHOP })
  await expect.poll(payout.runs).toBe(1)
  const conflict = await post({ headers: SHOP })
  open()
  await first
  const replay = await post({ headers: SHOP })

  expect([conflict.status, conflict.header('Retry-After'), conflict.header('X-Should-Retry')]).toEqual([
    409,
    '1',
    'true',
  ])
  expect(replay.replayed).toBe(true)
  for (const response of [conflict, replay]) {
    expect(response.header('Access-Control-Allow-Origin')).toBe(SHOP.Origin)
    const exposed = listed(response.header('Access-Control-Expose-Headers'))
    expect(exposed).toEqual(['date', 'idempotent-replayed', 'retry-after', 'x-should-retry'])
  }
})

test('a replay is for the origin that asks, not for the one that asked first', async () => {
  const { post } = await served(browserApp({ store: new MemoryStore(), createPayout: counted().handler }))
  await post({ headers: SHOP })
  const replay = await post({ headers: OFFICE })
  expect(replay.replayed).toBe(true)
  expect(replay.header('Access-Control-Allow-Origin')).toBe(OFFICE.Origin)
  const stranger = await post({ headers: { Origin: 'https://elsewhere.example' } })
  expect(stranger.header('Access-Control-Allow-Origin')).toBeNull()
})

test('a refusal by authentication can be read too', async () => {
  const { post } = await served(browserApp({ store: new MemoryStore(), createPayout: counted().handler }))
  const refused = await post({ headers: { ...SHOP, Authorization: 'Bearer unknown' } })
  expect(refused.status).toBe(401)
  expect(refused.header('Access-Control-Allow-Origin')).toBe(SHOP.Origin)
})

function listed(value: string | null): string[] {
  return (value ?? '').toLowerCase().split(',').sort()
}
