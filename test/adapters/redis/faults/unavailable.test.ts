import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { LIBRARIES } from '../../../support/default-clients.js'
import { type RedisServer, startRedis } from '../../../support/redis-server.js'
import { pay, type Setting, startService } from './service.js'

// Many reconnections, on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000 })

interface Outage {
  readonly name: string
  begin(redis: RedisServer): Promise<void> | void
  end(redis: RedisServer): Promise<void> | void
}

const OUTAGES: readonly Outage[] = [
  { name: 'down', begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
  { name: 'paused', begin: (redis) => redis.signal('SIGSTOP'), end: (redis) => redis.signal('SIGCONT') },
]
const CASES = LIBRARIES.flatMap((library) =>
  OUTAGES.map((outage) => ({ name: `Redis is ${outage.name}, with ${library.name}`, library, outage })),
)

/** A lease of half a minute: nothing here falls free because a lease lapsed. */
const OPTIONS = { leaseMs: 30_000, storeTimeoutMs: 300 }

describe.each(CASES)('$name', ({ library, outage }) => {
  test('before begin: 503 while it lasts, the handler stays idle', async () => {
    const { redis, service } = await start()
    await outage.begin(redis)

    const refused = await service.post('a')
    expect([refused.status, refused.header('Retry-After'), refused.header('X-Should-Retry')]).toEqual([
      503,
      '1',
      'true',
    ])
    expect(refused.json()).toMatchObject({ code: 'store_unavailable' })
    expect(service.runs()).toBe(0)
  })

  test('and the key is free when it is back, for whoever comes behind what was queued', async () => {
    const { redis, service } = await start()
    await outage.begin(redis)
    await service.post('a')
    await service.post('a')
    await outage.end(redis)

    const retry = await service.postUntilAvailable('a')
    expect(retry.status).toBe(201)
    expect(retry.json()).toMatchObject({ previousOutcome: expect.stringMatching(/^(none|failed)$/) })
    expect(service.runs()).toBe(1)
    expect((await service.postUntilAvailable('a')).header('Idempotent-Replayed')).toBe('true')
  })

  test('and what was queued frees the key for other processes too', async () => {
    const { redis, service } = await start()
    await outage.begin(redis)
    await service.post('a')
    await outage.end(redis)
    await service.postUntilAvailable('another') // What was queued has gone out.

    const other = await startService(library, redis.port, { options: OPTIONS })
    const retry = await other.postUntilAvailable('a')
    expect(retry.status).toBe(201)
    expect(retry.json()).toMatchObject({ previousOutcome: expect.stringMatching(/^(none|failed)$/) })
    expect([service.runs(), other.runs()]).toEqual([1, 1])
  })

  test('between begin and complete: the client gets its answer, and every retry afterwards the same', async () => {
    const { redis, service } = await start({
      async handler(req, res, next) {
        await outage.begin(redis)
        pay(req, res, next)
      },
    })
    const first = await service.post('a')
    expect([first.status, first.json()]).toEqual([201, { attempt: 1, previousOutcome: 'none' }])
    expect(service.events.map(({ type }) => type)).toContain('completion_pending')
    expect(service.events.map(({ type }) => type)).not.toContain('completed')

    await outage.end(redis)
    await service.seen('completed')
    const other = await startService(library, redis.port, { options: OPTIONS })
    for (const { postUntilAvailable } of [service, other]) {
      const retry = await postUntilAvailable('a')
      expect([retry.status, retry.header('Idempotent-Replayed')]).toEqual([201, 'true'])
      expect(retry.body).toEqual(first.body)
    }
    expect([service.runs(), other.runs()]).toEqual([1, 0])
  })

  test('between begin and release: the client hears of its failure, and the key is free when it is back', async () => {
    let isFirst = true
    const { redis, service } = await start({
      async handler(req, res, next) {
        if (!isFirst) return pay(req, res, next)
        isFirst = false
        await outage.begin(redis)
        res.status(422).json({ field: 'amount' })
      },
    })
    expect((await service.post('a')).status).toBe(422)

    await outage.end(redis)
    await service.seen('failed')
    const retry = await service.postUntilAvailable('a')
    expect(retry.json()).toMatchObject({ previousOutcome: 'failed' })
  })

  async function start(setting: Setting = {}) {
    const redis = await startRedis()
    onTestFinished(() => redis.close())
    const service = await startService(library, redis.port, { options: OPTIONS, ...setting })
    return { redis, service }
  }
})

describe.each(LIBRARIES)('Redis restarts empty, with $name', (library) => {
  test('between begin and complete: the completion is written all the same', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.close())
    const service = await startService(library, redis.port, {
      options: OPTIONS,
      async handler(req, res, next) {
        await redis.restart({ empty: true })
        pay(req, res, next)
      },
    })
    const first = await service.post('a')
    expect(first.status).toBe(201)

    await service.seen('completed')
    const other = await startService(library, redis.port, { options: OPTIONS })
    const retry = await other.postUntilAvailable('a')
    expect([retry.status, retry.header('Idempotent-Replayed')]).toEqual([201, 'true'])
    expect(retry.body).toEqual(first.body)
    expect([service.runs(), other.runs()]).toEqual([1, 0])
  })
})
