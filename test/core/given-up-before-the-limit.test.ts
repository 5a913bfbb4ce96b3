import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'
import { answerLate, failBefore, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

// What was pending was given up as soon as the next pause would have crossed the limit: with a last try at 1.5 s of 2.5 s, a
// store that was back after 2 s got no completion.

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const TIMES = { storeTimeoutMs: 200, leaseMs: 1_200, maxRunMs: 2_500 } as const
const { storeTimeoutMs, leaseMs, maxRunMs } = TIMES

describe.each([
  { name: 'completion', command: 'complete', status: 201, stored: 'completed' },
  { name: 'release', command: 'release', status: 500, stored: 'failed' },
] as const)('a pending $name', ({ command, status, stored }) => {
  async function pending() {
    const trial = engineOnTrial(TIMES)
    const execution = await trial.run()
    const claimedAt = performance.now()
    trial.store.always(command, failBefore())
    await execution.settle(answer(status))
    const triedAt = () => trial.store.sent.filter((one) => one.command === command).map(({ at }) => at - claimedAt)
    return { ...trial, triedAt }
  }

  test('is tried once more when maxRunMs is over, and then given up', async () => {
    const { engine, triedAt, types } = await pending()
    let idle = false
    void engine.idle().then(() => {
      idle = true
    })
    await vi.advanceTimersByTimeAsync(maxRunMs - 1)
    expect([types().includes('completion_given_up'), idle]).toEqual([false, false])
    await vi.advanceTimersByTimeAsync(1)
    expect([types().includes('completion_given_up'), idle]).toEqual([command === 'complete', true])
    await vi.advanceTimersByTimeAsync(maxRunMs)
    expect(triedAt()).toEqual([0, 100, 300, 700, 1_500, 2_500])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is stored where the store is back before maxRunMs is over, with its lease renewed until then', async () => {
    const { store, engine, send, types } = await pending()
    await vi.advanceTimersByTimeAsync(2_000)
    store.heal()
    await vi.advanceTimersByTimeAsync(499)
    expect(outcomeOf(await send())).toBe('in_flight')
    await vi.advanceTimersByTimeAsync(1)
    await engine.idle()
    expect(types().at(-1)).toBe(stored)
    expect(types()).not.toContain('lease_lost')
  })

  test('is stored where its last try is answered late, but in time', async () => {
    const { store, engine, types } = await pending()
    await vi.advanceTimersByTimeAsync(2_000)
    store.always(command, answerLate(storeTimeoutMs / 2))
    await vi.advanceTimersByTimeAsync(500 + storeTimeoutMs / 2)
    await engine.idle()
    expect(types().at(-1)).toBe(stored)
  })

  test('is given up when its last try has had its time', async () => {
    const { store, engine, types, triedAt } = await pending()
    await vi.advanceTimersByTimeAsync(2_000)
    store.always(command, hang)
    await vi.advanceTimersByTimeAsync(500 + storeTimeoutMs - 1)
    const told = types()
    expect(told).not.toContain('completion_given_up')
    await vi.advanceTimersByTimeAsync(1)
    await engine.idle()
    const last = command === 'complete' ? ['completion_given_up'] : []
    expect(types()).toEqual([...told, 'store_failed', ...last])
    await vi.advanceTimersByTimeAsync(maxRunMs)
    expect(triedAt()).toHaveLength(6)
  })

  test('that begins when maxRunMs is over is not tried again', async () => {
    const { store, engine, run } = engineOnTrial(TIMES)
    const execution = await run()
    await vi.advanceTimersByTimeAsync(maxRunMs)
    store.always(command, failBefore())
    await execution.settle(answer(status))
    await engine.idle()
    await vi.advanceTimersByTimeAsync(maxRunMs)
    expect(store.countOf(command)).toBe(1)
  })
})

test('the release of a claim that was given up is tried until its lease must have ended', async () => {
  const { store, engine, send } = engineOnTrial(TIMES)
  store.next('begin', failBefore())
  store.always('release', failBefore())
  const sentAt = performance.now()
  await send()
  await vi.advanceTimersByTimeAsync(leaseMs)
  await engine.idle()
  const released = store.sent.filter(({ command }) => command === 'release').map(({ at }) => at - sentAt)
  expect(released).toEqual([0, 100, 300, 700, 1_200])
})
