import { Redis } from 'ioredis'
import { agenticCommerce, ietfDraft07, type Profile, universalCommerce } from 'once-per-key'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import type { Handler } from './framework.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { serve } from './serve.js'

// What a profile keeps, as it is in Redis: `profiles.test.ts` has the rules, over the memory store.

const server = await startRedis()
const client = new Redis(server.url)
afterAll(async () => {
  client.disconnect()
  await server.close()
})

const PROFILES: readonly {
  readonly profile: Profile
  readonly mismatch: number
  readonly keeps429: boolean
  readonly perPath: boolean
}[] = [
  { profile: ietfDraft07, mismatch: 422, keeps429: false, perPath: false },
  { profile: agenticCommerce, mismatch: 422, keeps429: true, perPath: true },
  { profile: universalCommerce, mismatch: 409, keeps429: false, perPath: true },
]

/** Answers each status once, each time with another body. */
function answering(...statuses: number[]): Handler {
  let made = 0
  return () => ({ status: statuses[made] as number, json: { nr: ++made }, headers: [['X-Reason', 'the bank']] })
}

let stores = 0

describe.each(FRAMEWORKS)('on $name', (framework) => {
  describe.each(PROFILES)('$profile.name', ({ profile, mismatch, keeps429, perPath }) => {
    const options = () => ({ profile, store: new RedisStore({ client, prefix: `profiles-${++stores}:` }) })

    test('a declined card is kept, and a retry gets its bytes, from another application too', async () => {
      const given = options()
      const { send, once, runs } = await serve(framework, answering(402), { options: given })
      const elsewhere = await serve(framework, answering(201), { options: given })
      const first = await send()
      for (const retry of [await send(), await elsewhere.send()]) {
        expect([retry.status, retry.body, retry.header('X-Reason')]).toEqual([402, first.body, 'the bank'])
        expect(retry.header('Idempotent-Replayed')).toBe('true')
      }
      expect((await send({ json: { amount: 7 } })).status).toBe(mismatch)
      expect([runs(), elsewhere.runs()]).toEqual([1, 0])
      const name = { scope: 'acme', key: 'k', ...(perPath && { path: '/payouts' }) }
      expect(await once.inspect(name)).toMatchObject({ state: 'completed', answer: { status: 402 } })
    })

    test('a 5xx is not kept', async () => {
      const { send, runs } = await serve(framework, answering(503, 201), { options: options() })
      const statuses = [await send(), await send(), await send()].map(({ status }) => status)
      expect([statuses, runs()]).toEqual([[503, 201, 201], 2])
    })

    test(`a 429 is ${keeps429 ? '' : 'not '}kept`, async () => {
      const { send, runs } = await serve(framework, answering(429, 201), { options: options() })
      const statuses = [await send(), await send()].map(({ status }) => status)
      expect([statuses, runs()]).toEqual(keeps429 ? [[429, 429], 1] : [[429, 201], 2])
    })

    test('a key on another path', async () => {
      const { send, runs } = await serve(framework, answering(201, 201), { options: options() })
      await send()
      const other = await send({ path: '/refunds' })
      expect([other.status, runs()]).toEqual(perPath ? [201, 2] : [mismatch, 1])
    })
  })
})
