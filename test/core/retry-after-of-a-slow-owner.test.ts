import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, type Options, outcomeOf, runOf } from '../support/engine-on-trial.js'
import { failingStore } from '../support/failing-store.js'
import { failBefore } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** The defaults. */
const LEASE_MS = 30_000
const DEFAULTS = { leaseMs: LEASE_MS, storeTimeoutMs: 2_000, maxRunMs: 900_000, retentionMs: 86_400_000 }

function service(options: Options = {}) {
  return engineOnTrial({ ...DEFAULTS, ...options })
}

type Service = ReturnType<typeof service>

/** The seconds that a request is told now. */
async function toldBy({ send }: Service): Promise<number> {
  const decision = await send()
  if (decision.action !== 'reject' || decision.problem.code !== 'in_flight') throw new Error(outcomeOf(decision))
  return decision.problem.retryAfterSeconds ?? 0
}

/** Sends it again for as long as it is told to, as a client does. Returns how often it was refused, and how it ended. */
async function retried(service: Service, mostRetries: number): Promise<{ refusals: number; outcome: string }> {
  for (let refusals = 0; ; refusals++) {
    const decision = await service.send()
    const waits = decision.action === 'reject' && decision.problem.code === 'in_flight' && refusals < mostRetries
    if (!waits) return { refusals, outcome: outcomeOf(decision) }
    await vi.advanceTimersByTimeAsync(1_000 * (decision.problem.retryAfterSeconds ?? 0))
  }
}

describe('while its owner renews, a key in flight', () => {
  test('tells the base right behind the claim, more and more up to 8 s, and begins anew with each renewal', async () => {
    const trial = service()
    await trial.run()
    const told: number[] = []
    for (let second = 0; second < 20; second++) {
      told.push(await toldBy(trial))
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(told).toEqual([1, 4, 5, 5, 6, 6, 6, 7, 7, 7, 1, 4, 5, 5, 6, 6, 6, 7, 7, 7])
  })

  test('tells the base to the duplicates of a race', async () => {
    const trial = service()
    await trial.run()
    await vi.advanceTimersByTimeAsync(499)
    expect(await toldBy(trial)).toBe(1)
  })

  test('tells 8 s while a renewal is late, but not later than its time limit', async () => {
    const trial = service()
    await trial.run()
    trial.store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(11_999)
    expect(await toldBy(trial)).toBe(8)
  })

  test.each([
    { retryAfterMs: 0, atOnce: 1, late: 7 },
    { retryAfterMs: 2_500, atOnce: 3, late: 7 },
    { retryAfterMs: 60_000, atOnce: 60, late: 60 },
  ])('tells `retryAfterMs` ($retryAfterMs) at least', async ({ retryAfterMs, atOnce, late }) => {
    const trial = service({ retryAfterMs })
    await trial.run()
    expect(await toldBy(trial)).toBe(atOnce)
    await vi.advanceTimersByTimeAsync(9_000)
    expect(await toldBy(trial)).toBe(late)
  })

  test('tells no more than what remains of a short lease', async () => {
    const trial = service({ leaseMs: 4_000, storeTimeoutMs: 1_000 })
    await trial.run()
    trial.store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await toldBy(trial)).toBe(2)
  })

  test.each([
    { name: 'was a duplicate itself, right behind the owner', firstAtMs: 0, handlerMs: 4_900, retries: 2 },
    { name: 'was a duplicate itself, a second behind it', firstAtMs: 1_000, handlerMs: 10_900, retries: 2 },
    { name: 'lost its connection at once', firstAtMs: 500, handlerMs: 3_400, retries: 1 },
    { name: 'lost its connection after 2 s', firstAtMs: 2_500, handlerMs: 7_400, retries: 1 },
    { name: 'lost its connection after 5 s', firstAtMs: 5_500, handlerMs: 11_400, retries: 1 },
  ])('lets a client that retries twice outlast a slow handler: its first try $name', async (timing) => {
    const trial = service()
    const owner = await trial.run()
    setTimeout(() => void owner.settle(answer(201, 'made')), timing.handlerMs)
    await vi.advanceTimersByTimeAsync(timing.firstAtMs)
    expect(await retried(trial, timing.retries)).toMatchObject({ outcome: 'replay' })
  })
})

describe('once its owner has missed a renewal, a key in flight', () => {
  test('tells what remains of its lease', async () => {
    const trial = service()
    await trial.run()
    trial.store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(12_100)
    expect(await toldBy(trial)).toBe(18)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await toldBy(trial)).toBe(8)
    await vi.advanceTimersByTimeAsync(7_890)
    expect(await toldBy(trial)).toBe(1)
  })

  test('costs a few futile retries in place of one each second', async () => {
    const trial = service()
    await trial.run()
    trial.store.always('renew', failBefore())
    const { refusals, outcome } = await retried(trial, 100)
    expect(outcome).toBe('execute')
    expect(refusals).toBe(5)
  })
})

describe('an owner with another lease than the one who asks', () => {
  function two(ownersLeaseMs: number) {
    const store = failingStore()
    const owner = engineOnTrial({ ...DEFAULTS, leaseMs: ownersLeaseMs }, store)
    return { owner, other: engineOnTrial(DEFAULTS, store) }
  }

  test('that is longer: how much has passed is not known, so a client waits long between few retries', async () => {
    const { owner, other } = two(4 * LEASE_MS)
    await owner.run()
    owner.store.always('renew', failBefore())
    expect(await toldBy(other)).toBe(8)
    const { refusals, outcome } = await retried(other, 100)
    expect(outcome).toBe('execute')
    expect(refusals).toBeLessThan(20)
  })

  test('that is shorter: a client comes back when it would be over, not later', async () => {
    const { owner, other } = two(LEASE_MS / 3)
    await owner.run()
    expect(await toldBy(other)).toBe(10)
  })
})

test('a run that lost its lease tells its client by what the lease of its successor shows', async () => {
  const store = failingStore()
  const one = engineOnTrial(DEFAULTS, store)
  const stalled = await one.run()
  store.always('renew', failBefore())
  await vi.advanceTimersByTimeAsync(LEASE_MS)
  runOf(await engineOnTrial(DEFAULTS, store).send())
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await stalled.settle(answer())).toMatchObject({ problem: { code: 'in_flight', retryAfterSeconds: 6 } })
})
