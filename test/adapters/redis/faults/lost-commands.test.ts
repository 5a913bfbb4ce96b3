import { randomUUID } from 'node:crypto'
import type { Store } from 'once-per-key/core'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type ClientLibrary, LIBRARIES } from '../../../support/default-clients.js'
import { type FaultProxy, startFaultProxy } from '../../../support/fault-proxy.js'
import { gate } from '../../../support/gate.js'
import { type RedisServer, startRedis } from '../../../support/redis-server.js'
import { behindADeadOwner } from './dead-owner.js'
import { pay, startService } from './service.js'

// Many reconnections, on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000 })

/** Each resets the connection. `arrives`: the command takes effect. */
const FAULTS = [
  { name: 'request lost', method: 'dropRequest', arrives: false },
  { name: 'request torn', method: 'tearRequest', arrives: false },
  { name: 'reply lost', method: 'dropReplyTo', arrives: true },
] as const
const CASES = LIBRARIES.flatMap((library) =>
  FAULTS.map((fault) => ({ name: `${fault.name}, with ${library.name}`, library, fault })),
)

let redis: RedisServer
let proxy: FaultProxy

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.close())

beforeEach(async () => {
  const started = await startFaultProxy(redis.port)
  proxy = started
  return () => started.close()
})

describe.each(CASES)('$name: the connection is reset during', ({ library, fault }) => {
  /** New at each try: the server keeps the records of the last. */
  let key: string
  beforeEach(() => {
    key = `${library.name}-${fault.method}-${randomUUID()}`
  })

  test('begin: the owner runs, and meets no conflict with itself', async () => {
    const service = await startService(library, proxy.port)
    const met = proxy[fault.method](`acme:${key}-begin`)
    const first = await service.post(`${key}-begin`)
    await met

    if (library.sendsAgain) {
      expect(first.json()).toEqual({ attempt: 1, previousOutcome: 'none' })
    } else {
      // The library does not send again, but fails the command: the claim is given up, and the key free at once.
      expect([first.status, first.header('Retry-After')]).toEqual([503, '1'])
      expect(service.runs()).toBe(0)
      const retry = await service.post(`${key}-begin`)
      expect(retry.json()).toEqual(
        fault.arrives ? { attempt: 2, previousOutcome: 'failed' } : { attempt: 1, previousOutcome: 'none' },
      )
    }
    expect((await service.post(`${key}-begin`)).header('Idempotent-Replayed')).toBe('true')
    expect(service.runs()).toBe(1)
  })

  test('begin, where it takes over from a dead owner: the outcome stays unknown', async () => {
    const met = gate()
    const died = behindADeadOwner(() => void proxy[fault.method](`acme:${key}-takeover`).then(met.open))
    const service = await startService(library, proxy.port, { around: died })
    const first = await service.post(`${key}-takeover`)
    await met.opened
    const run = library.sendsAgain ? first : await service.post(`${key}-takeover`)

    expect(first.status).toBe(library.sendsAgain ? 201 : 503)
    const attempt = fault.arrives && !library.sendsAgain ? 3 : 2
    expect(run.json()).toEqual({ attempt, previousOutcome: 'unknown' })
    expect(service.runs()).toBe(1)
  })

  test('complete: the client gets its answer, and a retry the same', async () => {
    const met = gate()
    const service = await startService(library, proxy.port, {
      handler(req, res, next) {
        void proxy[fault.method](`acme:${key}-complete`).then(met.open)
        pay(req, res, next)
      },
    })
    const first = await service.post(`${key}-complete`)
    expect([first.status, first.header('Idempotent-Replayed')]).toEqual([201, undefined])
    await met.opened
    await service.seen('completed')
    expect(service.events.some(({ type }) => type === 'completion_pending')).toBe(!library.sendsAgain)

    const retry = await service.post(`${key}-complete`)
    expect([retry.status, retry.header('Idempotent-Replayed')]).toEqual([201, 'true'])
    expect(retry.body).toEqual(first.body)
    expect(service.runs()).toBe(1)
  })

  test('release: the client hears of its failure, and a retry runs', async () => {
    const met = gate()
    let isFirst = true
    const service = await startService(library, proxy.port, {
      handler(req, res, next) {
        if (!isFirst) return pay(req, res, next)
        isFirst = false
        void proxy[fault.method](`acme:${key}-release`).then(met.open)
        res.status(422).json({ field: 'amount' })
      },
    })
    const first = await service.post(`${key}-release`)
    expect(first.json()).toEqual({ field: 'amount' })
    await met.opened
    await service.seen('failed')

    const retry = await service.post(`${key}-release`)
    expect(retry.json()).toEqual({ attempt: 2, previousOutcome: 'failed' })
  })
})

test.each(LIBRARIES)('the connection is reset during renew, with $name: the lease lives on', async (library) => {
  await Promise.all(FAULTS.map((fault) => loseRenewal(library, fault)))
})

async function loseRenewal(library: ClientLibrary, { method }: (typeof FAULTS)[number]): Promise<void> {
  const key = `${library.name}-${method}-renew-${randomUUID()}`
  const link = await startFaultProxy(redis.port)
  const end = gate()
  onTestFinished(async () => {
    end.open()
    await link.close()
  })
  let met: Promise<void> | undefined
  const renewals = countRenewals(() => {
    met ??= link[method](`acme:${key}`)
  })
  const service = await startService(library, link.port, {
    options: { leaseMs: 1_200, storeTimeoutMs: 300 },
    around: renewals.around,
    async handler(req, res, next) {
      await end.opened
      pay(req, res, next)
    },
  })
  const first = service.post(key)
  first.catch(() => {}) // If the test fails before it looks.
  await renewals.thirdConfirmed
  await met

  // By now the lease is over that the claim began. On a busy machine the store may miss its short time limit.
  expect((await service.postUntilAvailable(key)).status).toBe(409)
  end.open()
  expect((await first).status).toBe(201)
  expect(service.events.map(({ type }) => type)).not.toContain('lease_lost')
  expect(service.runs()).toBe(1)
}

/** Stands before a store; `beforeOne` is called before each renewal. */
function countRenewals(beforeOne: () => void) {
  const third = gate()
  let count = 0
  return {
    thirdConfirmed: third.opened,
    around: (store: Store): Store => ({
      begin: (key, claim) => store.begin(key, claim),
      complete: (key, own) => store.complete(key, own),
      release: (key, own) => store.release(key, own),
      async renew(key, own) {
        beforeOne()
        const done = await store.renew(key, own)
        if (++count === 3) third.open()
        return done
      },
    }),
  }
}
