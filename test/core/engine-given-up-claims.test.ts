import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { type Fault, failingStore } from '../support/failing-store.js'
import {
  answerLate,
  answerWith,
  failAfter,
  failBefore,
  failLate,
  hang,
  loseReply,
  reachLate,
  throwAtOnce,
} from '../support/faults.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const { storeTimeoutMs, leaseMs } = TIMES

const FAULTS: { readonly name: string; readonly fault: Fault; readonly releases: number }[] = [
  { name: 'is never answered', fault: hang, releases: 1 },
  { name: 'takes effect, but its reply is lost', fault: loseReply, releases: 1 },
  { name: 'takes effect, and is answered late', fault: answerLate(5_000), releases: 2 },
  { name: 'reaches the store behind its release', fault: reachLate(5_000), releases: 2 },
  { name: 'fails late', fault: failLate(5_000), releases: 2 },
  { name: 'fails in time', fault: failBefore(), releases: 1 },
  { name: 'takes effect, then fails in time', fault: failAfter(), releases: 1 },
  { name: 'throws before there is a promise', fault: throwAtOnce, releases: 1 },
  { name: 'is answered with nothing', fault: answerWith(undefined), releases: 1 },
  { name: 'rejects with what is no error', fault: failBefore('down'), releases: 1 },
]

describe.each(FAULTS)('a claim that $name', ({ fault, releases }) => {
  test('is refused with 503, is released, and leaves the key new', async () => {
    const { store, engine, send, run, types } = engineOnTrial()
    store.next('begin', fault)
    const decided = send()
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    const decision = await decided
    expect(outcomeOf(decision)).toBe('store_unavailable')
    expect(decision).toMatchObject({ problem: { status: 503, retryAfterSeconds: 1 } })

    await vi.advanceTimersByTimeAsync(5_000)
    expect(store.names()).toEqual(['begin', ...Array(releases).fill('release')])
    expect(new Set(store.sent.map(({ terms }) => terms.token)).size).toBe(1)
    expect(types()).toEqual(['store_failed'])
    await engine.idle()

    // It may have been claimed and released (2), or never claimed (1): in no case is it in flight, or unknown.
    const next = await run({ body: { corrected: true } })
    expect(next.context.previousOutcome).not.toBe('unknown')
  })

  test('that was a takeover is refused as well, and the uncertainty is not forgotten', async () => {
    const { store, send, run } = engineOnTrial()
    await run()
    store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(leaseMs)
    store.next('begin', fault)
    const decided = send()
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    expect(outcomeOf(await decided)).toBe('store_unavailable')

    await vi.advanceTimersByTimeAsync(5_000)
    expect(outcomeOf(await send({ body: { corrected: true } }))).toBe('mismatched')
    expect((await run()).context.previousOutcome).toBe('unknown')
  })

  test('under `storeFailure: "runUnprotected"` runs, with an event, and its success is stored if it can be', async () => {
    const { store, send, engine, types } = engineOnTrial({ storeFailure: 'runUnprotected' })
    store.next('begin', fault)
    const decided = send()
    await vi.advanceTimersByTimeAsync(storeTimeoutMs)
    const decision = await decided
    if (decision.action !== 'execute') throw new Error(outcomeOf(decision))
    const { run: execution } = decision
    expect(execution.context).toMatchObject({ attempt: 0, previousOutcome: 'unknown' })
    expect(types()).toEqual(['store_failed', 'unprotected'])
    expect(await execution.settle({ status: 201, statusMessage: '', headers: [], body: Buffer.from('made') })).toEqual({
      action: 'send',
    })
    await engine.idle()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(store.countOf('release')).toBe(0)
    expect(outcomeOf(await send())).toBe('replay')
  })
})

test('a store that answers without a promise is understood', async () => {
  const store = { ...failingStore(), begin: () => ({ acquired: true, attempt: 1, previousOutcome: 'none' }) as never }
  expect((await engineOnTrial({}, store).run()).context.attempt).toBe(1)
})

test('a claim in time just before the limit runs', async () => {
  const { store, run } = engineOnTrial()
  store.next('begin', answerLate(storeTimeoutMs - 1))
  const running = run()
  await vi.advanceTimersByTimeAsync(storeTimeoutMs - 1)
  expect((await running).context.attempt).toBe(1)
})

test('a claim whose reply is read after its lease, since the process was stopped, runs nothing', async () => {
  const { store, engine, send, run } = engineOnTrial()
  const now = performance.now.bind(performance)
  store.next('begin', async (take) => {
    const reply = await take()
    // The clock has gone on, but no timer has fired: the reply came first.
    vi.spyOn(performance, 'now').mockImplementation(() => now() + leaseMs)
    return reply
  })
  expect(outcomeOf(await send())).toBe('store_unavailable')
  await engine.idle()
  expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  vi.mocked(performance.now).mockRestore()
})

test('a release of a given-up claim that fails is tried again until the lease would have ended it', async () => {
  const { store, send, run, engine } = engineOnTrial()
  store.next('begin', failAfter())
  store.next('release', failBefore(), failBefore(), failBefore())
  await send()
  let idle = false
  const ended = engine.idle().then(() => {
    idle = true
  })
  await vi.advanceTimersByTimeAsync(100 + 200 + 399)
  expect([store.countOf('release'), idle]).toEqual([3, false])
  await vi.advanceTimersByTimeAsync(1)
  expect([store.countOf('release'), idle]).toEqual([4, true])
  await ended
  expect((await run()).context.previousOutcome).toBe('failed')
})

test('a release of a given-up claim is given up when the lease must have ended', async () => {
  const { store, send, engine } = engineOnTrial()
  store.next('begin', failBefore())
  store.always('release', failBefore())
  await send()
  await vi.advanceTimersByTimeAsync(leaseMs)
  await engine.idle()
  const tried = store.countOf('release')
  expect(tried).toBeGreaterThan(5)
  await vi.advanceTimersByTimeAsync(10 * leaseMs)
  expect(store.countOf('release')).toBe(tried)
})

test('a re-sent claim, as by a client library, is the owner and gets the first reply again', async () => {
  const { store, run, send } = engineOnTrial()
  await (await run()).settle({ status: 422, statusMessage: '', headers: [], body: Buffer.from('') })
  store.next('begin', async (take) => {
    await take()
    return take()
  })
  expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  expect(outcomeOf(await send())).toBe('in_flight')
})

describe('a run without protection', () => {
  test('keeps trying to complete while the store is down, and its key is known once the store is back', async () => {
    const { store, run, send, types } = engineOnTrial({ storeFailure: 'runUnprotected' })
    for (const command of ['begin', 'renew', 'complete'] as const) store.always(command, failBefore())
    const execution = await run()
    expect(await execution.settle({ status: 200, statusMessage: '', headers: [], body: Buffer.from('x') })).toEqual({
      action: 'send',
    })
    await vi.advanceTimersByTimeAsync(2 * leaseMs)
    expect(execution.context.signal.aborted).toBe(false) // It has no lease to lose by time.
    store.heal()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(types().at(-1)).toBe('completed')
    expect(outcomeOf(await send())).toBe('replay')
  })

  test('stops counting as a run when maxRunMs is over, though its handler never ends', async () => {
    const { store, run, engine } = engineOnTrial({ storeFailure: 'runUnprotected' })
    store.always('begin', failBefore())
    store.always('renew', failBefore())
    await run()
    let idle = false
    void engine.idle().then(() => {
      idle = true
    })
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs - 1)
    expect(idle).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(idle).toBe(true)
  })

  test('has its answer sent where all that stands is a failure of another attempt', async () => {
    const { store, engine, run, send, types } = engineOnTrial({ storeFailure: 'runUnprotected' })
    await (await run()).settle({ status: 422, statusMessage: '', headers: [], body: Buffer.from('') })
    store.next('begin', failBefore())
    const unprotected = await run()
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(unprotected.context.signal.aborted).toBe(false)
    const settled = await unprotected.settle({ status: 201, statusMessage: '', headers: [], body: Buffer.from('') })
    expect(settled).toEqual({ action: 'send' })
    await engine.idle()
    // Nothing holds the answer, and an event says so.
    expect(types().slice(-3)).toEqual(['unprotected', 'completion_pending', 'completion_given_up'])
    expect(outcomeOf(await send())).toBe('execute')
  })

  test('is told by its renewal when the key belongs to another', async () => {
    const store = failingStore()
    const owner = engineOnTrial({}, store)
    await owner.run()
    const other = engineOnTrial({ storeFailure: 'runUnprotected' }, store)
    store.next('begin', failBefore())
    const unprotected = await other.run()
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(unprotected.context.signal.aborted).toBe(true)
    const settled = await unprotected.settle({ status: 200, statusMessage: '', headers: [], body: Buffer.from('') })
    expect(outcomeOf(settled)).toBe('in_flight')
  })
})
