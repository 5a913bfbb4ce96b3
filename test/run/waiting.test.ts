import { CertainFailure } from 'once-per-key'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { gate } from '../support/gate.js'
import { mustNotRun, OPERATION, rejection, runnerOnTrial } from './runner-on-trial.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const WAIT_MS = 10_000

/** Two processes on one store, and a run of the first that goes on. */
async function running() {
  const owner = runnerOnTrial()
  const { once, types } = runnerOnTrial({ inFlightWaitMs: WAIT_MS }, owner.given.store)
  const work = gate<() => string>()
  const began = gate()
  const first = owner.once(OPERATION, async () => {
    began.open()
    return (await work.opened)()
  })
  await began.opened
  const fail = (error: Error) =>
    work.open(() => {
      throw error
    })
  return { once, types, first, finish: (result: string) => work.open(() => result), fail }
}

test('a repeat waits for the owner’s result as long as inFlightWaitMs says', async () => {
  const { once, first, finish } = await running()
  const repeat = once(OPERATION, mustNotRun)
  await vi.advanceTimersByTimeAsync(3_000)
  finish('done')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await repeat).toBe('done')
  expect(await first).toBe('done')
})

test('a repeat waits for a run of its own process', async () => {
  const { once } = runnerOnTrial({ inFlightWaitMs: WAIT_MS })
  const work = gate<string>()
  const first = once(OPERATION, () => work.opened)
  const repeats = [once(OPERATION, mustNotRun), once(OPERATION, mustNotRun)]
  await vi.advanceTimersByTimeAsync(3_000)
  work.open('done')
  expect(await Promise.all([first, ...repeats])).toEqual(['done', 'done', 'done'])
})

test('a repeat is refused when its time is over', async () => {
  const { once, first, finish } = await running()
  const repeat = rejection(once(OPERATION, mustNotRun))
  await vi.advanceTimersByTimeAsync(WAIT_MS)
  expect(await repeat).toMatchObject({ code: 'in_flight' })
  finish('done')
  await first
})

describe('signal', () => {
  test('ends the waiting within a second, with its reason', async () => {
    const { once, first, finish } = await running()
    const abort = new AbortController()
    const repeat = rejection(once({ ...OPERATION, signal: abort.signal }, mustNotRun))
    await vi.advanceTimersByTimeAsync(2_000)
    const reason = new Error('shutting down')
    abort.abort(reason)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await repeat).toBe(reason)
    await once.idle()
    finish('done')
    await first
  })

  test('ends it also where the key falls free in the same moment: nobody runs', async () => {
    const { once, first, fail } = await running()
    const abort = new AbortController()
    const reason = new Error('shutting down')
    const repeat = rejection(once({ ...OPERATION, signal: abort.signal }, mustNotRun))
    await vi.advanceTimersByTimeAsync(2_000)
    abort.abort(reason)
    fail(new CertainFailure('declined'))
    await rejection(first)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await repeat).toBe(reason)
    await once.idle()
    expect(await once(OPERATION, async ({ previousOutcome }) => previousOutcome)).toBe('failed')
  })

  test('ends no run: its caller gets the result', async () => {
    const { once } = runnerOnTrial()
    const abort = new AbortController()
    const work = gate<string>()
    const seen: boolean[] = []
    const result = once({ ...OPERATION, signal: abort.signal }, async ({ signal }) => {
      abort.abort()
      seen.push(signal.aborted)
      return work.opened
    })
    work.open('done')
    expect(await result).toBe('done')
    expect(seen).toEqual([false])
    expect(await once(OPERATION, mustNotRun)).toBe('done')
  })

  test('that is aborted already claims nothing', async () => {
    const { once, events } = runnerOnTrial()
    const reason = new Error('too late')
    expect(await rejection(once({ ...OPERATION, signal: AbortSignal.abort(reason) }, mustNotRun))).toBe(reason)
    expect(events).toEqual([])
    expect(await once.inspect(OPERATION)).toBeNull()
  })
})

test('idle() waits for runs, and not for what nobody runs', async () => {
  const { once } = runnerOnTrial()
  const work = gate()
  const first = once(OPERATION, () => work.opened)
  let isIdle = false
  const idle = once.idle().then(() => {
    isIdle = true
  })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(isIdle).toBe(false)
  work.open()
  await first
  await idle
})

test('the lease is renewed while the function runs', async () => {
  const { once, first, finish, types } = await running()
  await vi.advanceTimersByTimeAsync(40_000) // more than three leases
  const repeat = rejection(once(OPERATION, mustNotRun))
  await vi.advanceTimersByTimeAsync(WAIT_MS)
  expect(await repeat).toMatchObject({ code: 'in_flight' })
  finish('done')
  expect(await first).toBe('done')
  expect(types()).toEqual(['in_flight'])
})
