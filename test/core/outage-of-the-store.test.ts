import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, type Options, outcomeOf, runOf, TIMES } from '../support/engine-on-trial.js'
import { type Command, type FailingStore, failingStore } from '../support/failing-store.js'
import { answerLate, failBefore, failLate, gated, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

vi.setConfig({ testTimeout: 30_000 })
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const { leaseMs, storeTimeoutMs } = TIMES
const COMMANDS = ['begin', 'renew', 'complete', 'release'] as const
/** How many commands may be unanswered past their limit before claims are refused unsent, and how many releases pend. */
const MOST_UNANSWERED = 1_000
const MOST_RELEASES = 250

function unansweredIn(store: FailingStore, command: Command): number {
  return store.sent.filter((one) => one.command === command && !one.answered).length
}

/** A service whose store can stop to answer, as a Redis does that hangs, and go on, as if nothing had been. */
function service(options: Options = {}, store = failingStore()) {
  const trial = engineOnTrial(options, store)
  let resume = () => {}
  let keys = 0
  return {
    ...trial,
    stop() {
      const { fault, open } = gated()
      for (const command of COMMANDS) store.always(command, fault)
      resume = open
    },
    goOn() {
      store.heal()
      resume()
    },
    /** So many requests, each with a key of its own. */
    async requests(count: number): Promise<string[]> {
      const decided = Array.from({ length: count }, () => trial.send({ key: `k${++keys}` }))
      await vi.advanceTimersByTimeAsync(0)
      vi.advanceTimersByTime(storeTimeoutMs) // All at once: one by one, a thousand timers take seconds.
      return (await Promise.all(decided)).map(outcomeOf)
    },
    unanswered: () => Object.fromEntries(COMMANDS.map((command) => [command, unansweredIn(store, command)])),
  }
}

describe('while a store does not answer', () => {
  test('640 refused requests leave a claim each and a bounded number of releases, however long it lasts', async () => {
    const { stop, requests, store } = service()
    stop()
    await requests(640)
    expect([store.countOf('begin'), store.countOf('release')]).toEqual([640, MOST_RELEASES])
    await vi.advanceTimersByTimeAsync(10 * leaseMs)
    expect([store.countOf('begin'), store.countOf('release')]).toEqual([640, MOST_RELEASES])
  })

  test('claims are refused without being sent once very many are unanswered, but for a probe a second', async () => {
    const { stop, requests, store, events, send } = service()
    stop()
    await requests(1_000)
    const before = { begins: store.countOf('begin'), events: events.length }
    expect(store.sent.filter(({ answered }) => !answered).length).toBeLessThan(MOST_UNANSWERED + 300)

    const startedAt = performance.now()
    for (let i = 0; i < 100; i++) {
      const decided = send({ key: `probe-${i}` })
      await vi.advanceTimersByTimeAsync(100)
      if (i % 10 > 0) expect(outcomeOf(await decided)).toBe('store_unavailable')
    }
    expect(performance.now() - startedAt).toBe(10_000)
    expect(store.countOf('begin') - before.begins).toBeLessThanOrEqual(11)
    expect(store.countOf('begin') - before.begins).toBeGreaterThanOrEqual(8)
    const told = events.slice(before.events).filter(({ type }) => type === 'store_paused')
    expect(told.length).toBeGreaterThanOrEqual(89)
    expect(told[0]).toMatchObject({ scope: 'acme', key: 'probe-1', unanswered: expect.any(Number) })
  })

  test('probes become rarer in a long outage: a day of them is no queue', async () => {
    const { stop, requests, store, send } = service()
    stop()
    await requests(1_000)
    const begins = store.countOf('begin')
    for (let second = 0; second < 86_400; second += 20) {
      void send({ key: `k${second}` })
      await vi.advanceTimersByTimeAsync(20_000)
    }
    expect(store.countOf('begin') - begins).toBeLessThan(500)
    expect(store.countOf('release')).toBeLessThanOrEqual(MOST_RELEASES) // Those of probes would only wait as well.
  })

  test('a completion and a renewal have one unanswered copy each, and are never dropped', async () => {
    const { stop, goOn, requests, store, run, send, types } = service({ maxRunMs: 900_000 })
    const running = await run({ key: 'running' })
    const ending = await run({ key: 'ending' })
    stop()
    void ending.settle(answer(201, 'paid'))
    await requests(1_000)
    await vi.advanceTimersByTimeAsync(600_000)
    expect(store.countOf('complete')).toBe(1)
    expect(store.countOf('renew')).toBe(2)

    goOn()
    await vi.advanceTimersByTimeAsync(0)
    expect(types()).toContain('completed')
    expect(outcomeOf(await send({ key: 'ending' }))).toBe('replay')
    expect(outcomeOf(await running.settle(answer()))).toBe('send')
  })

  test('a renewal that is answered late counts from when it was sent, and is followed by another at once', async () => {
    const { stop, goOn, store, run, types } = service()
    const { signal } = (await run()).context
    await vi.advanceTimersByTimeAsync(leaseMs / 3 - 1)
    stop()
    await vi.advanceTimersByTimeAsync(leaseMs / 2)
    expect(store.countOf('renew')).toBe(1)
    goOn()
    await vi.advanceTimersByTimeAsync(0)
    expect(store.countOf('renew')).toBe(2)
    await vi.advanceTimersByTimeAsync(2 * leaseMs)
    expect(signal.aborted).toBe(false)
    expect(types()).toEqual(['claimed', 'store_failed'])
  })

  test('a renewal that fails late is followed by another at once', async () => {
    const { store, run } = service()
    const { signal } = (await run()).context
    store.next('renew', failLate(leaseMs / 2))
    await vi.advanceTimersByTimeAsync(leaseMs / 3 + leaseMs / 2)
    expect(store.countOf('renew')).toBe(2)
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(signal.aborted).toBe(false)
  })

  test('its end is noticed by what was asked before: claims are sent again, and no key is held for nobody', async () => {
    const { stop, goOn, requests, engine, run, store } = service()
    stop()
    await requests(1_000)
    goOn()
    await vi.advanceTimersByTimeAsync(0)
    await engine.idle()
    expect(store.sent.filter(({ answered }) => !answered)).toEqual([])
    for (const key of ['k1', 'k500', 'k1000']) expect((await run({ key })).context.previousOutcome).toBe('failed')
  })

  test('unprotected runs go on, and what they complete is kept', async () => {
    const store = failingStore()
    const { stop, goOn, requests, send } = service({}, store)
    const unprotected = service({ storeFailure: 'runUnprotected' }, store)
    stop()
    await requests(1_000)
    void send({ key: 'probe' })
    const execution = runOf(await unprotected.send({ key: 'unsent' }))
    expect([execution.context.attempt, store.countOf('begin')]).toEqual([0, 1_001])
    expect(unprotected.types()).toEqual(['store_paused', 'unprotected'])
    void execution.settle(answer(201, 'paid'))
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    goOn()
    await vi.advanceTimersByTimeAsync(0)
    expect(outcomeOf(await send({ key: 'unsent' }))).toBe('replay')
  })

  test('engines that share a store share its bounds', async () => {
    const store = failingStore()
    const one = service({}, store)
    const other = service({}, store)
    one.stop()
    await one.requests(1_000)
    void one.send({ key: 'probe' })
    const begins = store.countOf('begin')
    expect(outcomeOf(await other.send({ key: 'of-the-other' }))).toBe('store_unavailable')
    expect(store.countOf('begin')).toBe(begins)
    expect(other.types()).toEqual(['store_paused'])
  })
})

describe('a command whose reply is lost for good', () => {
  test('is sent again where the store has answered a later one, and ever more rarely, since a client keeps each copy', async () => {
    const { store, run } = service({ maxRunMs: 900_000, retentionMs: 3_600_000 })
    const execution = await run()
    store.always('complete', hang)
    void execution.settle(answer())
    await vi.advanceTimersByTimeAsync(600_000)
    expect(store.countOf('renew')).toBeGreaterThan(100)
    expect(store.countOf('complete')).toBeGreaterThan(5)
    expect(store.countOf('complete')).toBeLessThan(15)
    await vi.advanceTimersByTimeAsync(300_000)
    const last = store.sent.findLast(({ command }) => command === 'complete')
    expect(Number(last?.at) - Number(store.sent[0]?.at)).toBe(900_000)
  })

  test('keeps claims back for a minute at most once the store answers again', async () => {
    const { store, requests, send } = service()
    store.always('begin', hang)
    await requests(1_000)
    store.heal()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(outcomeOf(await send({ key: 'probe' }))).toBe('execute')
    expect(outcomeOf(await send({ key: 'behind it' }))).toBe('execute')
  })
})

describe('a store that fails at once', () => {
  test('is not asked in vain by ever more releases', async () => {
    const { store, requests } = service()
    for (const command of COMMANDS) store.always(command, failBefore())
    for (let i = 0; i < 10; i++) await requests(200)
    await vi.advanceTimersByTimeAsync(leaseMs)
    const releases = store.countOf('release')
    // Some 12 each until the lease is over, of 250 at a time.
    expect(releases).toBeLessThan(MOST_RELEASES * 24)
    await vi.advanceTimersByTimeAsync(10 * leaseMs)
    expect(store.countOf('release')).toBe(releases)
  })

  test('is asked by every claim: nothing waits for an answer', async () => {
    const { store, requests, types } = service()
    for (const command of COMMANDS) store.always(command, failBefore())
    for (let i = 0; i < 15; i++) await requests(100)
    expect(store.countOf('begin')).toBe(1_500)
    expect(types()).not.toContain('store_paused')
  })
})

test('a claim that is answered late with the key is released beyond any bound', async () => {
  const { store, requests, engine, run } = service()
  store.always('begin', answerLate(2 * storeTimeoutMs))
  store.always('release', hang)
  expect(new Set(await requests(600))).toEqual(new Set(['store_unavailable']))
  expect(store.countOf('release')).toBe(MOST_RELEASES)
  store.heal()
  await vi.advanceTimersByTimeAsync(storeTimeoutMs)
  expect(store.countOf('release')).toBe(MOST_RELEASES + 600)
  await vi.advanceTimersByTimeAsync(leaseMs)
  await engine.idle()
  for (const key of ['k1', 'k300', 'k600']) expect((await run({ key })).context.previousOutcome).toBe('failed')
})
