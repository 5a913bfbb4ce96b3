import express from 'express'
import { Redis } from 'ioredis'
import { idempotency } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'
import { type RawReply, request } from '../support/raw-client.js'
import { startRedis } from '../support/redis-server.js'

const KIB = 1024
const LARGE = 'x'.repeat(64 * KIB)
const AT_ONCE = 10

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
afterAll(async () => {
  redis.disconnect()
  await server.close()
})

const STORES: Readonly<Record<string, () => Store>> = {
  'a MemoryStore': () => new MemoryStore({ maxBytes: 2 * 1024 * KIB }),
  'a MemoryStore that evicts': () => new MemoryStore({ maxBytes: 2 * 1024 * KIB, whenFull: 'evict' }),
  Redis: () => new RedisStore({ client: redis }),
}

/** A service where each payment is counted, and a merchant decides how large its answer is, or that it fails. */
async function service(store: Store) {
  const payments = new Map<string, number>()
  const once = idempotency({ store, scope: (req) => req.get('X-Merchant') })
  const app = express()
  app.post('/pay', express.json(), once, (req, res) => {
    const { key, scope } = req.idempotency as NonNullable<typeof req.idempotency>
    const name = `${scope} ${key}`
    payments.set(name, (payments.get(name) ?? 0) + 1)
    if (req.body.fails) return void res.status(req.body.fails).end()
    res.status(201).json({ paid: name, padding: req.body.large ? LARGE : '' })
  })
  const running = await listen(app)
  onTestFinished(running.close)
  const pay = (merchant: string, key: string, body: object = {}): Promise<RawReply> =>
    request(running.port, { path: '/pay', key, headers: { 'X-Merchant': merchant }, body })
  return { pay, payments, once }
}

// One merchant filled a default store for all others in a second; and where it evicted, their records went, whose retries then
// paid twice.
describe.each(Object.entries(STORES))('%s', (_name, open) => {
  test('serves a merchant as if it were alone, whatever another sends', { timeout: 60_000 }, async () => {
    const { pay, payments, once } = await service(open())
    const before = await Promise.all(range(10).map((i) => pay('careful', `before ${i}`)))

    let isOver = false
    let attacks = 0
    const attacking = Promise.all(
      range(AT_ONCE).map(async (lane) => {
        for (let i = 0; !isOver; i++) {
          const body = { large: i % 3 === 0, fails: i % 3 === 1 ? [500, 400][i % 2] : undefined, lane }
          // Its own keys, and those that the other merchant uses.
          await pay('greedy', i % 5 === 4 ? `during ${i % 30}` : `${lane} ${i}`, body)
          attacks++
        }
      }),
    )
    const during: RawReply[] = []
    for (const i of range(30)) during.push(await pay('careful', `during ${i}`))
    while (attacks < 300) await pay('careful', `while ${attacks}`)
    isOver = true
    await attacking

    const first = [...before, ...during]
    const keys = [...range(10).map((i) => `before ${i}`), ...range(30).map((i) => `during ${i}`)]
    for (const [i, key] of keys.entries()) {
      expect(first[i]?.status, key).toBe(201)
      const retry = await pay('careful', key)
      expect([retry.status, retry.header('Idempotent-Replayed')], key).toEqual([201, 'true'])
      expect(retry.json()).toEqual({ paid: `careful ${key}`, padding: '' })
      expect(payments.get(`careful ${key}`), key).toBe(1)
    }
    expect((await pay('newcomer', '1')).status).toBe(201)
    await once.idle()
  })
})

function range(length: number): readonly number[] {
  return Array.from({ length }, (_, i) => i)
}
