import type { IdempotencyRecord, Store } from 'once-per-key/core'
import { createOperationEngine, fingerprintOf } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, type Options, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { failingStore } from '../support/failing-store.js'
import { answer, type Request } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 24) }))
afterEach(() => void vi.useRealTimers())

const { retentionMs } = TIMES
const CLOCK_SKEW_MS = 300_000
/** For so long a request may be repeated. */
const LIMIT_MS = retentionMs - CLOCK_SKEW_MS

/** A store that counts how often it is looked at and claimed, and fails on command. */
class WatchedStore extends MemoryStore {
  looks = 0
  claims = 0
  isAway = false

  override begin(...args: Parameters<MemoryStore['begin']>): ReturnType<MemoryStore['begin']> {
    this.claims++
    return super.begin(...args)
  }

  override inspect(key: string): ReturnType<MemoryStore['inspect']> {
    this.looks++
    if (this.isAway) throw new Error('The store is away')
    return super.inspect(key)
  }
}

interface Dated extends Request {
  readonly firstSent?: Date | undefined
}

/** An engine whose requests say when they were first sent. */
function dated(options: Options = {}, store: Store = new WatchedStore()) {
  const firstSent = (request: Dated) => request.firstSent
  const trial = engineOnTrial({ firstSent, ...options }, store as never)
  return { ...trial, store: store as WatchedStore, send: (request: Dated) => trial.send(request) }
}

const ago = (ms: number) => new Date(Date.now() - ms)

describe('a request that was first sent too long ago', () => {
  test.each([
    { name: 'at the limit', ageMs: LIMIT_MS, outcome: 'execute' },
    { name: 'a millisecond behind it', ageMs: LIMIT_MS + 1, outcome: 'key_expired' },
    { name: 'now', ageMs: 0, outcome: 'execute' },
    { name: 'by a clock that is ahead', ageMs: -CLOCK_SKEW_MS, outcome: 'execute' },
    { name: 'by a clock that is too far ahead', ageMs: -CLOCK_SKEW_MS - 1, outcome: 'key_invalid' },
  ])('$name: $outcome', async ({ ageMs, outcome }) => {
    const { send } = dated()
    expect(outcomeOf(await send({ firstSent: ago(ageMs) }))).toBe(outcome)
  })

  test('with an invalid date is refused with 400, whatever its record says', async () => {
    const { send, types } = dated()
    const decision = await send({ firstSent: new Date('yesterday') })
    expect(decision).toMatchObject({ problem: { code: 'key_invalid', status: 400, detail: /not a valid date/ } })
    expect(types()).toEqual(['rejected'])
  })

  test('never claims: it looks, once, and is told of by one event', async () => {
    const { send, store, types } = dated()
    const decision = await send({ firstSent: ago(LIMIT_MS + 1) })
    expect([store.looks, store.claims]).toEqual([1, 0])
    expect(types()).toEqual(['key_expired'])
    expect(decision).toMatchObject({
      problem: { status: 409, shouldRetry: false, retryAfterSeconds: null, retentionSeconds: retentionMs / 1_000 },
    })
  })

  test('counts the shorter retention, and publishes it', async () => {
    const unknownRetentionMs = retentionMs / 2
    const { send, engine } = dated({ unknownRetentionMs })
    const decision = await send({ firstSent: ago(unknownRetentionMs - CLOCK_SKEW_MS + 1) })
    expect(outcomeOf(decision)).toBe('key_expired')
    if (decision.action !== 'reject') throw new Error('expected a problem')
    const body = JSON.parse(String(engine.answerFor(decision, {}).body))
    expect(body).toMatchObject({ code: 'key_expired', retentionSeconds: unknownRetentionMs / 1_000 })
  })

  test('counts `clockSkewMs`', async () => {
    const { send } = dated({ clockSkewMs: 0 })
    expect(outcomeOf(await send({ key: 'a', firstSent: ago(retentionMs) }))).toBe('execute')
    expect(outcomeOf(await send({ key: 'b', firstSent: ago(retentionMs + 1) }))).toBe('key_expired')
    expect(outcomeOf(await send({ key: 'c', firstSent: ago(-1) }))).toBe('key_invalid')
  })
})

describe('a late retry whose record is still there', () => {
  const late = () => ago(LIMIT_MS + 1)

  test('gets the answer of a completed one', async () => {
    const { run, send, types } = dated()
    await (await run({})).settle(answer(201, 'made'))
    const decision = await send({ firstSent: late() })
    expect(decision).toMatchObject({ action: 'replay', answer: { status: 201, body: Buffer.from('made') } })
    expect(types().at(-1)).toBe('replayed')
  })

  test('is told that the answer was not kept', async () => {
    const { run, send } = dated()
    await (await run({})).settle({ ...answer(), body: null })
    expect(outcomeOf(await send({ firstSent: late() }))).toBe('answer_not_kept')
  })

  test.each<{ name: string; end: (run: Awaited<ReturnType<ReturnType<typeof dated>['run']>>) => unknown }>([
    { name: 'in flight', end: () => {} },
    { name: 'completed', end: (run) => run.settle(answer()) },
    { name: 'uncertain', end: (run) => run.settle(answer(500)) },
  ])('is told of another request under its key: $name', async ({ end }) => {
    const { run, send, types } = dated()
    await end(await run({}))
    expect(outcomeOf(await send({ body: { amount: 7 }, firstSent: late() }))).toBe('mismatched')
    expect(types().at(-1)).toBe('mismatched')
  })

  test.each<{ name: string; end: (run: Awaited<ReturnType<ReturnType<typeof dated>['run']>>) => unknown }>([
    { name: 'is in flight', end: () => {} },
    { name: 'failed and is uncertain', end: (run) => run.settle(answer(500)) },
    { name: 'failed with certainty', end: (run) => run.settle(answer(422)) },
    { name: 'has lapsed', end: () => vi.advanceTimersByTimeAsync(TIMES.maxRunMs + TIMES.leaseMs) },
  ])('never runs where it $name, not even by waiting', async ({ end }) => {
    const { run, send, store } = dated({ inFlightWaitMs: 10_000 })
    await end(await run({}))
    const claims = store.claims
    expect(outcomeOf(await send({ firstSent: late() }))).toBe('key_expired')
    expect(store.claims).toBe(claims)
  })
})

describe('a look that fails', () => {
  test.each(['refuse', 'runUnprotected'] as const)('runs nothing, with %s', async (storeFailure) => {
    const { send, store, types } = dated({ storeFailure })
    store.isAway = true
    expect(outcomeOf(await send({ firstSent: ago(LIMIT_MS + 1) }))).toBe('store_unavailable')
    expect(types()).toEqual(['store_failed'])
  })

  test('because the store never replies ends with its time limit, and `idle` waits for it', async () => {
    class Silent extends MemoryStore {
      override inspect(): never {
        return new Promise<IdempotencyRecord | null>(() => {}) as never
      }
    }
    const { engine, send } = dated({}, new Silent())
    const decided = send({ firstSent: ago(LIMIT_MS + 1) })
    let isIdle = false
    void engine.idle().then(() => {
      isIdle = true
    })
    await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs - 1)
    expect(isIdle).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(outcomeOf(await decided)).toBe('store_unavailable')
    expect(isIdle).toBe(true)
  })
})

describe('a request that does not say when it was first sent', () => {
  test('costs nothing more and is never refused for it', async () => {
    const { send, store } = dated()
    expect(outcomeOf(await send({ firstSent: undefined }))).toBe('execute')
    expect([store.looks, store.claims]).toEqual([0, 1])
  })
})

describe('misuse', () => {
  test('of a store without `inspect` is an option mistake', () => {
    expect(() => dated({}, failingStore())).toThrow(/firstSent: it needs a store with `inspect`/)
  })

  test.each([
    { given: { firstSent: () => undefined, clockSkewMs: retentionMs }, is: /clockSkewMs: 3600000 is not less than/ },
    { given: { firstSent: () => undefined, clockSkewMs: -1 }, is: /clockSkewMs: expected an integer/ },
    { given: { firstSent: new Date() }, is: /firstSent: expected a function/ },
  ])('$is', ({ given, is }) => {
    expect(() => dated(given as unknown as Options)).toThrow(is)
  })

  test('a short retention is no mistake where nothing is checked', () => {
    expect(() => engineOnTrial({ retentionMs: 72_000 })).not.toThrow()
    expect(() => dated({ retentionMs: 72_000 })).toThrow(/clockSkewMs: 300000 is not less than the retention, 72000/)
  })

  test.each([
    { name: 'a string', firstSent: () => 'Tue, 24 Nov 2026' as never, says: 'returned a string' },
    {
      name: 'a promise that rejects', // Unhandled, it would end the process.
      firstSent: () => Promise.reject(new Error('no such header')) as never,
      says: 'returned an object',
    },
    {
      name: 'a throw',
      firstSent: () => {
        throw new Error('no such header')
      },
      says: 'failed: no such header',
    },
  ])('$name is passed to the application', async ({ firstSent, says }) => {
    const { send, store } = dated({ firstSent })
    await expect(send({})).rejects.toMatchObject({ code: 'first_sent_failed', message: expect.stringContaining(says) })
    expect(store.claims).toBe(0)
  })
})

describe('an engine without requests', () => {
  const identity = { namespace: 'invoices', scope: 'acme', key: 'in_7', fingerprint: fingerprintOf(null) }

  test('checks the time that a claim names', async () => {
    const engine = createOperationEngine({ store: new MemoryStore(), ...TIMES })
    const told = await engine.claim({ ...identity, firstSent: ago(LIMIT_MS + 1) })
    expect(told).toMatchObject({ action: 'refuse', code: 'key_expired', retryAfterMs: null })
    expect(await engine.claim({ ...identity, firstSent: ago(LIMIT_MS) })).toMatchObject({ action: 'execute' })
  })

  test.each([
    { name: 'a store without `inspect`', store: failingStore(), firstSent: new Date(0), code: 'command_missing' },
    { name: 'an invalid date', store: new MemoryStore(), firstSent: new Date(Number.NaN), code: 'arguments_invalid' },
    { name: 'a number', store: new MemoryStore(), firstSent: 0 as never, code: 'arguments_invalid' },
  ])('refuses $name at the first claim', ({ store, firstSent, code }) => {
    const engine = createOperationEngine({ store, ...TIMES })
    expect(() => engine.claim({ ...identity, firstSent })).toThrow(expect.objectContaining({ code }))
  })

  test('refuses a time where all would have expired', () => {
    const engine = createOperationEngine({ store: new MemoryStore(), ...TIMES, retentionMs: 80_000 })
    expect(() => engine.claim({ ...identity, firstSent: new Date() })).toThrow(/not longer than `clockSkewMs`/)
  })
})
