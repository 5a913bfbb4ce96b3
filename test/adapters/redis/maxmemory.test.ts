import { Redis } from 'ioredis'
import { singleTenant } from 'once-per-key'
import { createRequestEngine } from 'once-per-key/http'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { requestFacts } from '../../support/request-facts.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'

const server = await startRedis('--maxmemory-policy', 'noeviction')
const redis = new Redis(server.port)
const store = new RedisStore({ client: redis })
afterAll(async () => {
  redis.disconnect()
  await server.close()
})

const failedMs = 60_000

test('where maxmemory is reached only claims fail: every owner still ends, and every record is still shown', async () => {
  for (const key of ['completed', 'renewed', 'ended', 'released', 'failed']) await store.begin(key, claimOf('t1'))
  await store.complete('completed', { ...ownOf('t1'), answer: ANSWER })
  await store.release('failed', { ...ownOf('t1'), failedMs })
  await redis.config('SET', 'maxmemory', '1')

  await expect(store.begin('new', claimOf('t1'))).rejects.toThrow(/OOM/)
  await expect(store.begin('failed', claimOf('t2'))).rejects.toThrow(/OOM/)
  expect(await store.begin('completed', claimOf('t2'))).toMatchObject({
    acquired: false,
    record: { state: 'completed' },
  })
  expect(await store.begin('renewed', claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'in-flight' } })

  expect(await store.renew('renewed', { ...ownOf('t1'), leaseMs: 30_000 })).toEqual({ ok: true })
  expect(await store.complete('ended', { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })
  expect(await store.release('released', { ...ownOf('t1'), failedMs })).toEqual({ ok: true })
  expect(await store.complete('lost', { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })

  await redis.config('SET', 'maxmemory', '0')
  expect(await store.begin('new', claimOf('t2'))).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
  expect(await store.begin('failed', claimOf('t3'))).toEqual({ acquired: true, attempt: 2, previousOutcome: 'failed' })
})

test('where maxmemory is reached claims that were refused leave nothing behind, so they cannot fill Redis', async () => {
  await redis.flushall()
  await redis.config('SET', 'maxmemory', '1')
  const once = createRequestEngine({ store, scope: singleTenant })
  for (let i = 0; i < 20; i++) {
    const decision = await once.decide(requestFacts({ key: `refused-${i}` }))
    expect(decision).toMatchObject({ action: 'reject', problem: { code: 'store_unavailable' } })
  }
  await once.idle()
  expect(await redis.dbsize()).toBe(0)
  await redis.config('SET', 'maxmemory', '0')
})

test('where maxmemory is reached an uncertain failure is never lost in silence', async () => {
  await redis.config('SET', 'maxmemory', '1')
  await expect(store.release('unknown', { ...ownOf('t1'), uncertain: true, failedMs })).rejects.toThrow(/OOM/)
  await redis.config('SET', 'maxmemory', '0')
})
