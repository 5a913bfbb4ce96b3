import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { type Command, failingStore } from '../support/failing-store.js'
import { answerLate, failBefore, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const { leaseMs, maxRunMs, storeTimeoutMs } = TIMES
const OTHERS_RECORD = {
  ok: false,
  record: { state: 'in-flight', fingerprint: 'v1.x', attempt: 2, uncertain: true, leaseRemainingMs: 5 },
}

function timesOf({ store }: ReturnType<typeof engineOnTrial>, command: Command): number[] {
  const claimedAt = store.sent[0]?.at ?? 0
  return store.sent.filter((one) => one.command === command).map(({ at }) => at - claimedAt)
}

describe('while the handler runs, the lease', () => {
  test('is renewed at every third of it, so that a retry never takes over', async () => {
    const trial = engineOnTrial()
    const { signal } = (await trial.run()).context
    await vi.advanceTimersByTimeAsync(leaseMs * 3)
    expect(timesOf(trial, 'renew')).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((i) => (i * leaseMs) / 3))
    expect(outcomeOf(await trial.send())).toBe('in_flight')
    expect(signal.aborted).toBe(false)
  })

  test('is renewed no more once the run has ended', async () => {
    const trial = engineOnTrial()
    const execution = await trial.run()
    await vi.advanceTimersByTimeAsync(leaseMs)
    await execution.settle(answer())
    await vi.advanceTimersByTimeAsync(10 * leaseMs)
    expect(trial.store.countOf('renew')).toBe(3)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is renewed until maxRunMs, and then lapses', async () => {
    const trial = engineOnTrial()
    const { signal } = (await trial.run()).context
    await vi.advanceTimersByTimeAsync(maxRunMs)
    const lastRenewalAt = timesOf(trial, 'renew').at(-1) ?? 0
    expect(lastRenewalAt).toBeLessThan(maxRunMs)
    await vi.advanceTimersByTimeAsync(lastRenewalAt + leaseMs - maxRunMs - 1)
    expect(outcomeOf(await trial.send())).toBe('in_flight')
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.aborted).toBe(true)
    expect(trial.events.at(-1)).toEqual({
      type: 'lease_lost',
      scope: 'acme',
      key: 'order-1',
      attempt: 1,
      reason: 'lapsed',
    })
    expect((await trial.run()).context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
    expect(timesOf(trial, 'renew').at(-1)).toBe(lastRenewalAt)
  })

  test('survives renewals that fail or hang, as long as one in leaseMs is confirmed', async () => {
    const trial = engineOnTrial()
    const { signal } = (await trial.run()).context
    trial.store.next('renew', failBefore(), hang)
    await vi.advanceTimersByTimeAsync(leaseMs + 1)
    // The third renewal is sent in the instant in which the lease is over: too late.
    expect(signal.aborted).toBe(true)

    const spared = engineOnTrial()
    const execution = await spared.run()
    spared.store.next('renew', failBefore(), answerLate(500))
    await vi.advanceTimersByTimeAsync(2 * leaseMs)
    expect(execution.context.signal.aborted).toBe(false)
    expect(spared.types()).toEqual(['claimed', 'store_failed'])
  })
})

describe('the lease is lost', () => {
  test('when leaseMs has passed since the last confirmed command was sent, not since it was answered', async () => {
    const trial = engineOnTrial()
    trial.store.next('begin', answerLate(900))
    trial.store.always('renew', hang)
    const running = trial.run()
    await vi.advanceTimersByTimeAsync(900)
    const { signal } = (await running).context
    await vi.advanceTimersByTimeAsync(leaseMs - 900 - 1)
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.aborted).toBe(true)
  })

  test('counted from the sending of a renewal, too', async () => {
    const trial = engineOnTrial()
    const { signal } = (await trial.run()).context
    trial.store.next('renew', answerLate(900))
    await vi.advanceTimersByTimeAsync(leaseMs / 3 + 900)
    trial.store.always('renew', hang)
    await vi.advanceTimersByTimeAsync(leaseMs - 900 - 1)
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.aborted).toBe(true)
  })

  test('on a stale renewal, at once; no further renewal is sent', async () => {
    const trial = engineOnTrial()
    const { signal } = (await trial.run()).context
    trial.store.next('renew', () => Promise.resolve(OTHERS_RECORD as never))
    const aborted = vi.fn()
    signal.addEventListener('abort', aborted)
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(aborted).toHaveBeenCalledOnce()
    expect(signal.reason).toMatchObject({ name: 'IdempotencyError', code: 'lease_lost' })
    expect(trial.events.at(-1)).toMatchObject({ type: 'lease_lost', reason: 'taken' })
    await vi.advanceTimersByTimeAsync(10 * leaseMs)
    expect(trial.store.countOf('renew')).toBe(1)
    expect(trial.types().filter((type) => type === 'lease_lost')).toHaveLength(1)
  })

  test('and a signal that is asked for afterwards has aborted', async () => {
    const trial = engineOnTrial()
    const execution = await trial.run()
    trial.store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(execution.context.signal.aborted).toBe(true)
    expect(execution.context.signal).toBe(execution.context.signal)
  })

  test('by time only: a renewal that gets through later keeps the key, and the run completes', async () => {
    const trial = engineOnTrial()
    const execution = await trial.run()
    trial.store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(leaseMs)
    trial.store.heal()
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(outcomeOf(await trial.send())).toBe('in_flight')
    expect(await execution.settle(answer())).toEqual({ action: 'send' })
    expect(trial.types().filter((type) => type === 'lease_lost')).toHaveLength(1)
  })
})

describe('a run that lost its lease to another is told at its end', () => {
  /** A stalled run, and the attempt that took its key over. */
  async function takenOver() {
    const store = failingStore()
    const one = engineOnTrial({}, store)
    const stalled = await one.run()
    store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(leaseMs)
    store.heal()
    const heir = await one.run()
    return { ...one, stalled, heir }
  }

  test('the answer that the record holds, once the other has completed', async () => {
    const { stalled, heir, send } = await takenOver()
    await heir.settle(answer(201, 'the heir’s'))
    const settled = await stalled.settle(answer(201, 'the stalled one’s'))
    expect(settled.action === 'replay' && String(settled.answer.body)).toBe('the heir’s')
    const replay = await send()
    expect(replay).toEqual(settled)
  })

  test('409 in_flight while the other runs', async () => {
    const { stalled } = await takenOver()
    expect(outcomeOf(await stalled.settle(answer()))).toBe('in_flight')
  })

  test('409 in_flight after the other failed', async () => {
    const { stalled, heir } = await takenOver()
    await heir.fail()
    expect(outcomeOf(await stalled.settle(answer()))).toBe('in_flight')
  })

  test('409 answer_not_kept where the other’s answer was not kept', async () => {
    const { stalled, heir } = await takenOver()
    await heir.settle({ ...answer(), body: null })
    expect(outcomeOf(await stalled.settle(answer()))).toBe('answer_not_kept')
  })

  test('the answer too, if it failed itself', async () => {
    const { stalled, heir } = await takenOver()
    await heir.settle(answer(201, 'the heir’s'))
    expect(outcomeOf(await stalled.settle(answer(500)))).toBe('replay')
  })

  test('never the answer to another request, which a later holder of the key completed', async () => {
    const trial = engineOnTrial()
    const stalled = await trial.run()
    const record = { state: 'completed', fingerprint: 'v1.another', attempt: 1, answer: answer(201, 'another’s') }
    trial.store.next('complete', () => Promise.resolve({ ok: false, record } as never))
    expect(outcomeOf(await stalled.settle(answer()))).toBe('mismatched')
  })

  test('409 in_flight where the store knows no record', async () => {
    const trial = engineOnTrial()
    const stalled = await trial.run()
    trial.store.next('complete', () => Promise.resolve({ ok: false, record: null } as never))
    expect(outcomeOf(await stalled.settle(answer()))).toBe('in_flight')
    expect(trial.types()).toEqual(['claimed', 'lease_lost'])
  })

  test('and it changes nothing of the other’s: the other ends as if alone', async () => {
    const { stalled, heir, send } = await takenOver()
    await stalled.fail()
    expect(outcomeOf(await send())).toBe('in_flight')
    expect(await heir.settle(answer(201, 'the heir’s'))).toEqual({ action: 'send' })
    expect(outcomeOf(await send())).toBe('replay')
  })

  test('503 where the store does not answer: without a lease, no unconfirmed success is sent', async () => {
    const { store, stalled, heir, send } = await takenOver()
    await heir.settle(answer(201, 'the heir’s'))
    store.next('complete', failBefore())
    expect(outcomeOf(await stalled.settle(answer(201, 'the stalled one’s')))).toBe('store_unavailable')
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    const replay = await send()
    expect(replay.action === 'replay' && String(replay.answer.body)).toBe('the heir’s')
  })

  test('503 also in place of a failure that the store does not confirm: the other may have succeeded', async () => {
    const { store, stalled, heir, send } = await takenOver()
    await heir.settle(answer(201, 'the heir’s'))
    store.next('release', failBefore())
    expect(outcomeOf(await stalled.settle(answer(422, 'refused')))).toBe('store_unavailable')
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    expect(outcomeOf(await send())).toBe('replay')
  })
})

test('a run whose lease lapsed, and whom nobody followed, completes: its client gets its answer', async () => {
  const { store, run, send } = engineOnTrial()
  const execution = await run()
  store.always('renew', failBefore())
  await vi.advanceTimersByTimeAsync(leaseMs + 1)
  expect(await execution.settle(answer())).toEqual({ action: 'send' })
  expect(outcomeOf(await send())).toBe('replay')
})
