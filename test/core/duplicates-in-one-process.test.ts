import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, type Options, outcomeOf, runOf, TIMES } from '../support/engine-on-trial.js'
import { failingStore } from '../support/failing-store.js'
import { answerLate, answerWith, failBefore, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

// Fake timers are slow by the hundred.
vi.setConfig({ testTimeout: 30_000 })
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const WAIT_MS = 30_000
const MANY = 200

function service(options: Options = {}) {
  const trial = engineOnTrial({ inFlightWaitMs: WAIT_MS, ...options })
  const sendMany = (count = MANY) => Array.from({ length: count }, () => trial.send())
  return { ...trial, sendMany }
}

type Told = Awaited<ReturnType<ReturnType<typeof service>['send']>>

async function outcomesOf(duplicates: readonly Promise<Told>[]): Promise<Record<string, number>> {
  const outcomes = (await Promise.all(duplicates)).map(outcomeOf)
  return Object.fromEntries(
    [...new Set(outcomes)].map((one) => [one, outcomes.filter((other) => other === one).length]),
  )
}

describe('duplicates of a run of the same process', () => {
  test('cost no command: they are given its answer when it is stored', async () => {
    const { store, run, sendMany, types } = service()
    const owner = await run()
    const duplicates = sendMany()
    await vi.advanceTimersByTimeAsync(5_000)
    await owner.settle(answer(201, 'made'))
    await vi.advanceTimersByTimeAsync(0)
    const told = await Promise.all(duplicates)
    for (const decision of told) expect(decision.action === 'replay' && String(decision.answer.body)).toBe('made')
    expect(store.names()).toEqual(['begin', 'renew', 'complete'])
    expect(types()).toEqual(['claimed', 'completed', ...Array(MANY).fill('replayed')])
  })

  test('get bytes of their own: changing those of one changes no other', async () => {
    const { run, sendMany } = service()
    const owner = await run()
    const duplicates = sendMany(3)
    await vi.advanceTimersByTimeAsync(5_000)
    const given = answer(201, 'made')
    await owner.settle(given)
    await vi.advanceTimersByTimeAsync(0)
    const told = await Promise.all(duplicates)
    for (const decision of told) {
      const body = decision.action === 'replay' ? decision.answer.body : null
      expect(String(body)).toBe('made')
      body?.fill(0)
    }
    expect(String(given.body)).toBe('made')
  })

  test('that came behind a claim which was still under way cost one command each', async () => {
    const { store, send, sendMany } = service()
    const owning = send()
    const duplicates = sendMany()
    const owner = runOf(await owning)
    await vi.advanceTimersByTimeAsync(5_000)
    await owner.settle(answer())
    await vi.advanceTimersByTimeAsync(0)
    expect(await outcomesOf(duplicates)).toEqual({ replay: MANY })
    expect(store.countOf('begin')).toBe(1 + MANY)
  })

  test('wait until the answer is stored, where the store does not confirm it at once', async () => {
    const { store, run, sendMany } = service()
    const owner = await run()
    const duplicates = sendMany(3)
    store.next('complete', failBefore(), failBefore())
    await owner.settle(answer())
    const waiting = countOf(duplicates)
    await vi.advanceTimersByTimeAsync(299)
    expect(waiting.told()).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(await outcomesOf(duplicates)).toEqual({ replay: 3 })
  })

  test('are told where its answer was not kept', async () => {
    const { run, sendMany } = service()
    const owner = await run()
    const duplicates = sendMany(3)
    await owner.settle({ ...answer(), body: null })
    await vi.advanceTimersByTimeAsync(0)
    expect(await outcomesOf(duplicates)).toEqual({ answer_not_kept: 3 })
  })

  test('one becomes the owner when it fails, and the others wait for that one, with one command', async () => {
    const { store, run, sendMany } = service()
    const owner = await run()
    const duplicates = sendMany()
    await owner.settle(answer(422))
    await vi.advanceTimersByTimeAsync(0)
    const heir = runOf((await duplicates[0]) as Told)
    expect(heir?.context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
    await vi.advanceTimersByTimeAsync(2_000)
    await heir.settle(answer())
    await vi.advanceTimersByTimeAsync(0)
    expect(await outcomesOf(duplicates)).toEqual({ execute: 1, replay: MANY - 1 })
    expect(store.countOf('begin')).toBe(2)
  })

  test('are all told when its outcome is unknown and may not be run again, with one command', async () => {
    const { store, run, sendMany } = service({ unknownOutcome: 'refuse' })
    const owner = await run()
    const duplicates = sendMany()
    await owner.fail()
    await vi.advanceTimersByTimeAsync(0)
    expect(await outcomesOf(duplicates)).toEqual({ outcome_unknown: MANY })
    expect(store.countOf('begin')).toBe(2)
  })

  test('one takes over when its lease is lost', async () => {
    const { store, run, sendMany } = service({ inFlightWaitMs: 3 * TIMES.leaseMs })
    await run()
    store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs / 2)
    const duplicates = sendMany(5)
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs / 2 + 1)
    const heir = runOf((await duplicates[0]) as Told)
    expect(heir?.context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
    await heir.settle(answer())
    await vi.advanceTimersByTimeAsync(0)
    expect(await outcomesOf(duplicates)).toEqual({ execute: 1, replay: 4 })
  })

  test('ask again where its record proves to be another’s', async () => {
    const { store, run, sendMany, types } = service()
    const owner = await run()
    const duplicates = sendMany(3)
    store.next('complete', answerWith({ ok: false, record: null }))
    await owner.settle(answer())
    await vi.advanceTimersByTimeAsync(0)
    expect(types()).toContain('lease_lost')
    expect(store.countOf('begin')).toBe(2)
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs + 1_000)
    expect(runOf((await duplicates[0]) as Told).context.previousOutcome).toBe('unknown')
  })

  test('are refused when their time is over, and ask nothing', async () => {
    const { store, run, sendMany, types } = service()
    await run()
    const duplicates = sendMany(3)
    await vi.advanceTimersByTimeAsync(WAIT_MS - 1)
    expect(types()).toEqual(['claimed'])
    await vi.advanceTimersByTimeAsync(1)
    for (const decision of await Promise.all(duplicates)) {
      expect(decision).toMatchObject({ problem: { code: 'in_flight', retryAfterSeconds: 8 } })
    }
    expect(types()).toEqual(['claimed', 'in_flight', 'in_flight', 'in_flight'])
    expect(store.countOf('begin')).toBe(1)
    expect(vi.getTimerCount()).toBe(1) // That of the run.
  })

  test('stop within a second when their client leaves', async () => {
    const { run, send } = service()
    await run()
    let left = false
    const duplicate = send({ isAbandoned: () => left })
    await vi.advanceTimersByTimeAsync(3_500)
    left = true
    await vi.advanceTimersByTimeAsync(1_000)
    expect(outcomeOf(await duplicate)).toBe('in_flight')
  })

  test('never wait for it with another body', async () => {
    const { run, send } = service()
    await run()
    expect(outcomeOf(await send({ body: { amount: 999 } }))).toBe('mismatched')
  })

  test('do not wait for a run that nothing protects', async () => {
    const { store, run, send } = service({ storeFailure: 'runUnprotected' })
    store.next('begin', failBefore())
    await run()
    expect(outcomeOf(await send())).toBe('execute')
  })
})

describe('duplicates of a run of another process', () => {
  function two() {
    const store = failingStore()
    return { owner: engineOnTrial({}, store), here: engineOnTrial({ inFlightWaitMs: WAIT_MS }, store), store }
  }

  test('ask as one', async () => {
    const { owner, here, store } = two()
    const run = await owner.run()
    const duplicates = Array.from({ length: MANY }, () => here.send())
    await vi.advanceTimersByTimeAsync(10_000)
    await run.settle(answer())
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await outcomesOf(duplicates)).toEqual({ replay: MANY })
    expect(store.countOf('begin')).toBeLessThan(1 + MANY + 25)
  })

  test('go on when the one that asks has gone, or has failed to hear', async () => {
    const { owner, here, store } = two()
    const run = await owner.run()
    let left = false
    const first = here.send({ isAbandoned: () => left })
    const second = here.send()
    const third = here.send()
    await vi.advanceTimersByTimeAsync(3_000)
    left = true
    await vi.advanceTimersByTimeAsync(1_500)
    expect(outcomeOf(await first)).toBe('in_flight')
    store.next('begin', hang)
    await vi.advanceTimersByTimeAsync(1_000 + TIMES.storeTimeoutMs)
    expect(outcomeOf(await second)).toBe('store_unavailable')
    await run.settle(answer())
    await vi.advanceTimersByTimeAsync(2_000)
    expect(outcomeOf(await third)).toBe('replay')
  })

  test('one that acquires the key for nobody leaves it to the next', async () => {
    const { owner, here, store } = two()
    const run = await owner.run()
    let left = false
    const first = here.send({ isAbandoned: () => left })
    const second = here.send()
    await vi.advanceTimersByTimeAsync(0)
    await run.settle(answer(422))
    store.next('begin', answerLate(500))
    await vi.advanceTimersByTimeAsync(100)
    left = true
    await vi.advanceTimersByTimeAsync(1_500)
    expect(outcomeOf(await first)).toBe('in_flight')
    expect(runOf(await second).context).toMatchObject({ attempt: 3, previousOutcome: 'failed' })
  })
})

describe('the number of duplicates that wait', () => {
  test('is bounded: a scope takes no more than is left to the others', async () => {
    const waitMs = 2_000
    const { run, send, sendMany } = service({ inFlightWaitMs: waitMs })
    await run()
    await run({ scope: 'globex' })
    const many = countOf(sendMany(1_100))
    const other = countOf([send({ scope: 'globex' })])
    await vi.advanceTimersByTimeAsync(waitMs - 1)
    expect([many.told(), other.told()]).toEqual([600, 0])
    await vi.advanceTimersByTimeAsync(1)
    expect([many.told(), other.told()]).toEqual([1_100, 1])

    const again = countOf(sendMany(500))
    await vi.advanceTimersByTimeAsync(waitMs - 1)
    expect(again.told()).toBe(0)
  })
})

function countOf(duplicates: readonly Promise<Told>[]): { told(): number } {
  let told = 0
  for (const one of duplicates) void one.then(() => told++)
  return { told: () => told }
}
