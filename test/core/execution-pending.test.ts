import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import type { Fault } from '../support/failing-store.js'
import {
  answerLate,
  answerWith,
  failAfter,
  failBefore,
  failLate,
  hang,
  loseReply,
  throwAtOnce,
} from '../support/faults.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const { leaseMs, maxRunMs, storeTimeoutMs } = TIMES

/** Another copy follows an error soon; where nothing is heard, once the store has answered a later command (a renewal). */
const SOON_MS = 100
const BEHIND_A_RENEWAL_MS = leaseMs / 2

const FAULTS: { readonly name: string; readonly fault: Fault; readonly repeatedAfterMs: number }[] = [
  { name: 'hangs', fault: hang, repeatedAfterMs: BEHIND_A_RENEWAL_MS },
  { name: 'loses its reply', fault: loseReply, repeatedAfterMs: BEHIND_A_RENEWAL_MS },
  { name: 'is answered later than a renewal', fault: answerLate(9_000), repeatedAfterMs: BEHIND_A_RENEWAL_MS },
  { name: 'fails', fault: failBefore(), repeatedAfterMs: SOON_MS },
  { name: 'takes effect and fails', fault: failAfter(), repeatedAfterMs: SOON_MS },
  { name: 'throws at once', fault: throwAtOnce, repeatedAfterMs: SOON_MS },
  { name: 'is answered with nothing', fault: answerWith(null), repeatedAfterMs: SOON_MS },
]

describe.each(FAULTS)('a completion that $name', ({ fault, repeatedAfterMs }) => {
  test('is sent in time, with events, and retried until it is stored', async () => {
    const { store, engine, run, send, types } = engineOnTrial()
    const execution = await run()
    store.next('complete', fault)
    const settling = execution.settle(answer(201, 'made'))
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    expect(await settling).toEqual({ action: 'send' })
    await vi.advanceTimersByTimeAsync(repeatedAfterMs)
    await engine.idle()
    expect(types()).toEqual(['claimed', 'store_failed', 'completion_pending', 'completed'])
    expect(store.countOf('complete')).toBe(2)
    const replay = await send()
    expect(replay.action === 'replay' && String(replay.answer.body)).toBe('made')
  })
})

test('a completion that the store always confirms late is heard all the same', async () => {
  const { store, engine, run, types } = engineOnTrial()
  const execution = await run()
  store.always('complete', answerLate(1.5 * storeTimeoutMs))
  const settling = execution.settle(answer())
  await vi.advanceTimersByTimeAsync(storeTimeoutMs)
  expect(await settling).toEqual({ action: 'send' })
  await vi.advanceTimersByTimeAsync(storeTimeoutMs / 2)
  await engine.idle()
  expect(types()).toEqual(['claimed', 'store_failed', 'completion_pending', 'completed'])
})

test('an end behind maxRunMs, whose reply comes after that of the last renewal, is heard all the same', async () => {
  const { store, engine, run, types } = engineOnTrial({ maxRunMs: 60_500 })
  const completed = await run({ key: 'completed' })
  const failed = await run({ key: 'failed' })
  store.always('renew', failBefore())
  await vi.advanceTimersByTimeAsync(59_000)
  store.always('renew', hang) // The last ones, sent at 60 s, time out at 61 s.
  await vi.advanceTimersByTimeAsync(1_600)
  store.next('complete', answerLate(800))
  store.next('release', answerLate(800))
  const ends = [completed.settle(answer(201, 'made')), failed.fail()]
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await Promise.all(ends)).toEqual([{ action: 'send' }, { action: 'send' }])
  await engine.idle()
  expect(types().filter((type) => type !== 'store_failed')).toEqual([
    'claimed',
    'claimed',
    'lease_lost',
    'lease_lost',
    'completed',
    'failed',
  ])
})

test('a release that the store always confirms late is heard all the same', async () => {
  const { store, engine, run, types } = engineOnTrial()
  const execution = await run()
  store.always('release', answerLate(1.5 * storeTimeoutMs))
  void execution.fail()
  await vi.advanceTimersByTimeAsync(1.5 * storeTimeoutMs)
  await engine.idle()
  expect(types()).toEqual(['claimed', 'store_failed', 'failed'])
})

test('a pending completion keeps its key: the lease is renewed, and a retry is in flight, not new', async () => {
  const { store, run, send, types } = engineOnTrial()
  const execution = await run()
  store.always('complete', failBefore())
  await execution.settle(answer())
  for (let elapsedMs = 0; elapsedMs < 3 * leaseMs; elapsedMs += 1_000) {
    await vi.advanceTimersByTimeAsync(1_000)
    expect(outcomeOf(await send())).toBe('in_flight')
  }
  expect(store.countOf('renew')).toBe(9)
  store.heal()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(outcomeOf(await send())).toBe('replay')
  expect(types()).not.toContain('lease_lost')
})

test('a pending completion is retried with growing pauses of at most 2 s', async () => {
  const { store, run } = engineOnTrial()
  const execution = await run()
  store.always('complete', failBefore())
  await execution.settle(answer())
  await vi.advanceTimersByTimeAsync(20_000)
  const sentAt = store.sent.filter(({ command }) => command === 'complete').map(({ at }) => at)
  const pauses = sentAt.slice(1).map((at, i) => at - (sentAt[i] ?? 0))
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, ...Array(8).fill(2_000)])
})

test('a pending completion is given up when maxRunMs is over, with an event; the outcome is unknown then', async () => {
  const { store, engine, run, types } = engineOnTrial()
  const execution = await run()
  store.always('complete', failBefore())
  await execution.settle(answer())
  await vi.advanceTimersByTimeAsync(maxRunMs)
  expect(types().at(-1)).toBe('completion_given_up')
  await engine.idle()
  const tried = store.countOf('complete')
  await vi.advanceTimersByTimeAsync(leaseMs)
  expect(store.countOf('complete')).toBe(tried)
  expect(vi.getTimerCount()).toBe(0)
  expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
})

test('an error that ends the last pause early is not the last time', async () => {
  const { store, engine, run, types } = engineOnTrial()
  const execution = await run()
  await vi.advanceTimersByTimeAsync(maxRunMs - 15_000)
  store.always('renew', hang)
  store.next('complete', failLate(14_500), failBefore())
  await Promise.all([execution.settle(answer()), vi.advanceTimersByTimeAsync(15_000)])
  await engine.idle()
  expect(store.countOf('complete')).toBe(3)
  expect(types().at(-1)).toBe('completed')
})

test('a pending completion ends when the record proves to be another’s', async () => {
  const { store, engine, run, types } = engineOnTrial()
  const execution = await run()
  store.always('complete', failBefore())
  await execution.settle(answer())
  store.heal()
  store.next('complete', answerWith({ ok: false, record: null }))
  await vi.advanceTimersByTimeAsync(100)
  await engine.idle()
  expect(types().slice(-2)).toEqual(['completion_pending', 'lease_lost'])
  await vi.advanceTimersByTimeAsync(maxRunMs)
  expect(store.countOf('complete')).toBe(2)
})

test('a renewal that finds the completion done, whose reply was lost, is no loss of the lease', async () => {
  const { store, run, types } = engineOnTrial()
  const execution = await run()
  store.always('complete', loseReply)
  const settling = execution.settle(answer())
  await vi.advanceTimersByTimeAsync(leaseMs / 2)
  await settling
  expect(store.countOf('renew')).toBe(1)
  expect(types()).not.toContain('lease_lost')
  store.heal()
  await vi.advanceTimersByTimeAsync(leaseMs)
  expect(types().at(-1)).toBe('completed')
})

describe.each(FAULTS)('a release that $name', ({ fault, repeatedAfterMs }) => {
  test('lets the failure be sent in time, and is retried until the key is free', async () => {
    const { store, engine, run, types } = engineOnTrial()
    const execution = await run()
    store.next('release', fault)
    const settling = execution.settle(answer(422))
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    expect(await settling).toEqual({ action: 'send' })
    await vi.advanceTimersByTimeAsync(repeatedAfterMs)
    await engine.idle()
    expect(types()).toEqual(['claimed', 'store_failed', 'failed'])
    expect(store.countOf('release')).toBe(2)
    expect((await run({ body: { corrected: true } })).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  })

  test('never makes fail() reject', async () => {
    const { store, run } = engineOnTrial()
    const execution = await run()
    store.always('release', fault)
    const failing = execution.fail()
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    expect(await failing).toEqual({ action: 'send' })
    await vi.advanceTimersByTimeAsync(maxRunMs + leaseMs)
    expect(vi.getTimerCount()).toBe(0)
  })
})

test('a pending release keeps its key until it arrives', async () => {
  const { store, run, send } = engineOnTrial()
  const execution = await run()
  store.always('release', failBefore())
  await execution.settle(answer(400))
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  expect(outcomeOf(await send())).toBe('in_flight')
  store.heal()
  await vi.advanceTimersByTimeAsync(5_000)
  expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
})

test('an unconfirmed success is not sent once the lease is over, though nobody has followed; its retry gets it', async () => {
  const { store, run, send } = engineOnTrial()
  const execution = await run()
  for (const command of ['renew', 'complete'] as const) store.always(command, failBefore())
  await vi.advanceTimersByTimeAsync(leaseMs + 1)
  const settled = await execution.settle(answer())
  expect(outcomeOf(settled)).toBe('store_unavailable')
  expect(settled).toMatchObject({
    problem: { detail: expect.stringMatching(/may have been carried out.*with the same key/) },
  })
  store.heal()
  await vi.advanceTimersByTimeAsync(100)
  expect(outcomeOf(await send())).toBe('replay')
})

test('an unconfirmed success is not sent when the lease ends while its completion is on its way', async () => {
  const { store, run } = engineOnTrial()
  const execution = await run()
  store.always('renew', failBefore())
  await vi.advanceTimersByTimeAsync(leaseMs - storeTimeoutMs / 2)
  store.always('complete', hang)
  const settling = execution.settle(answer())
  await vi.advanceTimersByTimeAsync(storeTimeoutMs)
  expect(outcomeOf(await settling)).toBe('store_unavailable')
})
