import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { engineOnTrial, type Options, outcomeOf, runOf, TIMES } from '../support/engine-on-trial.js'
import { failingStore } from '../support/failing-store.js'
import { answerLate, failBefore, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const WAIT_MS = 10_000

/** Where duplicates come, and `run`: a run of another process. What they hear is of the former. */
function waiting(options: Options = {}) {
  const store = failingStore()
  const trial = engineOnTrial({ inFlightWaitMs: WAIT_MS, ...options }, store)
  return { ...trial, run: engineOnTrial({}, store).run, runHere: trial.run }
}

test('a duplicate does not wait by default', async () => {
  const { store, run, send } = engineOnTrial()
  await run()
  expect(outcomeOf(await send())).toBe('in_flight')
  expect(store.countOf('begin')).toBe(2)
})

test('a duplicate waits for the owner’s answer, and gets it', async () => {
  const { run, send } = waiting()
  const owner = await run()
  const duplicate = send()
  await vi.advanceTimersByTimeAsync(3_000)
  await owner.settle(answer(201, 'made'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(outcomeOf(await duplicate)).toBe('replay')
})

test('a duplicate asks with one token and growing pauses of at most a second', async () => {
  const { store, run, send } = waiting()
  await run()
  const duplicate = send()
  await vi.advanceTimersByTimeAsync(WAIT_MS)
  await duplicate
  const asked = store.sent.filter(({ command }) => command === 'begin').slice(1)
  expect(new Set(asked.map(({ terms }) => terms.token)).size).toBe(1)
  const pauses = asked.slice(1).map(({ at }, i) => at - (asked[i]?.at ?? 0))
  const untilTheEnd = pauses.slice(0, -1) // The last one is cut short by the end of the wait.
  expect(untilTheEnd).toEqual([...untilTheEnd].sort((a, b) => a - b))
  expect(untilTheEnd[0]).toBe(25)
  expect(Math.max(...pauses)).toBe(1_000)
  expect(pauses.reduce((sum, pause) => sum + pause)).toBe(WAIT_MS)
})

test('a duplicate is refused when the wait is over, with one event', async () => {
  const { run, send, types } = waiting()
  await run()
  const duplicate = send()
  await vi.advanceTimersByTimeAsync(WAIT_MS - 1)
  expect(types()).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(outcomeOf(await duplicate)).toBe('in_flight')
  expect(types()).toEqual(['in_flight'])
})

test('a duplicate becomes the owner when the key falls free', async () => {
  const { run, send } = waiting()
  const owner = await run()
  const duplicate = send()
  await vi.advanceTimersByTimeAsync(500)
  await owner.settle(answer(422))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(runOf(await duplicate).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
})

test('of many duplicates, one becomes the owner and the others get its answer', async () => {
  const { run, send } = waiting()
  const owner = await run()
  const duplicates = Array.from({ length: 10 }, () => send())
  await vi.advanceTimersByTimeAsync(500)
  await owner.settle(answer(422))
  await vi.advanceTimersByTimeAsync(1_000) // Their pauses are at most that long, so each has asked again.
  const heir = runOf(await Promise.race(duplicates))
  await heir.settle(answer())
  await vi.advanceTimersByTimeAsync(1_000)
  const outcomes = (await Promise.all(duplicates)).map(outcomeOf)
  expect(outcomes.sort()).toEqual(['execute', ...Array(9).fill('replay')])
})

test('a duplicate takes over after a lapse, and is told that the outcome is unknown', async () => {
  const { store, run, send } = waiting()
  await run()
  store.always('renew', failBefore())
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs - 2_000)
  const duplicate = send()
  await vi.advanceTimersByTimeAsync(3_000)
  expect(runOf(await duplicate).context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
})

test('a duplicate under `unknownOutcome: "refuse"` stops at a lapse', async () => {
  const { store, run, send } = waiting({ unknownOutcome: 'refuse' })
  await run()
  store.always('renew', failBefore())
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs - 2_000)
  const duplicate = send()
  await vi.advanceTimersByTimeAsync(3_000)
  expect(outcomeOf(await duplicate)).toBe('outcome_unknown')
})

test.each(['refuse', 'runUnprotected'] as const)(
  'a duplicate that has heard of an owner never runs for want of a reply: `storeFailure: %j`',
  async (storeFailure) => {
    const { store, engine, run, send, types } = waiting({ storeFailure })
    const owner = await run()
    const duplicate = send()
    await vi.advanceTimersByTimeAsync(0)
    store.next('begin', failBefore())
    await vi.advanceTimersByTimeAsync(100)
    expect(outcomeOf(await duplicate)).toBe('store_unavailable')
    expect(outcomeOf(await owner.settle(answer()))).toBe('send')
    await engine.idle()
    expect(types()).toEqual(['store_failed'])
  },
)

test('a mismatched request does not wait', async () => {
  const { store, run, send } = waiting()
  await run()
  expect(outcomeOf(await send({ body: { amount: 999 } }))).toBe('mismatched')
  expect(store.countOf('begin')).toBe(2)
})

test('a duplicate whose client leaves during a pause asks no more', async () => {
  const { store, run, send } = waiting()
  const owner = await run()
  let left = false
  const duplicate = send({ isAbandoned: () => left })
  await vi.advanceTimersByTimeAsync(3_000)
  const asked = store.countOf('begin')
  left = true
  await owner.settle(answer(422))
  await vi.advanceTimersByTimeAsync(WAIT_MS)
  expect(outcomeOf(await duplicate)).toBe('in_flight')
  expect(store.countOf('begin')).toBe(asked)
})

test('a duplicate whose client leaves while it claims releases the claim: no handler runs', async () => {
  const { store, engine, run, send, types } = waiting()
  const owner = await run()
  let left = false
  const duplicate = send({ isAbandoned: () => left })
  await vi.advanceTimersByTimeAsync(0)
  await owner.settle(answer(422))
  store.next('begin', answerLate(500))
  await vi.advanceTimersByTimeAsync(100)
  left = true
  await vi.advanceTimersByTimeAsync(500)
  expect(outcomeOf(await duplicate)).toBe('in_flight')
  await engine.idle()
  expect(types()).toEqual([])
  expect((await run()).context).toMatchObject({ attempt: 3, previousOutcome: 'failed' })
})

test('a claim that becomes unanswered while a duplicate waits is refused, released, and leaves no ghost', async () => {
  const { store, engine, run, send } = waiting()
  const owner = await run()
  const duplicate = send()
  await vi.advanceTimersByTimeAsync(0)
  await owner.settle(answer(422))
  store.next('begin', answerLate(5_000))
  await vi.advanceTimersByTimeAsync(2_000)
  expect(outcomeOf(await duplicate)).toBe('store_unavailable')
  await vi.advanceTimersByTimeAsync(5_000)
  await engine.idle()
  expect((await run()).context).toMatchObject({ attempt: 3, previousOutcome: 'failed' })
})

test('a waiting duplicate whose store hangs is refused in time', async () => {
  const { store, run, send } = waiting()
  await run()
  const duplicate = send()
  store.always('begin', hang)
  await vi.advanceTimersByTimeAsync(25 + TIMES.storeTimeoutMs)
  expect(outcomeOf(await duplicate)).toBe('store_unavailable')
})
