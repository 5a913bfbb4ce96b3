import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { answerOf, claimant, FAILED_MS, LEASE_MS, RETENTION_MS, stateOf } from './claimant.js'

const FULL = { code: 'store_full' }
const KIB = 1024

afterEach(() => {
  vi.useRealTimers()
})

describe('a store that is full by count', () => {
  test('refuses a claim, and keeps what it has', async () => {
    const store = new MemoryStore({ maxEntries: 2 })
    await claimant(store, 'a').begin()
    const b = claimant(store, 'b')
    await b.begin()
    await b.complete()
    await expect(claimant(store, 'c').begin()).rejects.toMatchObject(FULL)
    expect(await stateOf(store, 'a')).toBe('in-flight')
    expect(await stateOf(store, 'b')).toBe('completed')
  })

  test('tells what to do about it, without a key', async () => {
    const store = new MemoryStore({ maxEntries: 1 })
    await claimant(store, 'secret-1').begin()
    const error = await claimant(store, 'secret-2')
      .begin()
      .catch((error: Error) => error)
    expect(error).toMatchObject({
      message: expect.stringMatching(/full \(1 records, \d+ bytes\).*maxBytes or maxEntries/),
    })
    expect(String(error)).not.toContain('secret')
  })

  test('still answers for the keys that it has: replay, in flight, takeover', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxEntries: 2, now: clock.now })
    const a = claimant(store, 'a')
    await a.begin()
    await a.complete()
    await claimant(store, 'b').begin()
    expect(await claimant(store, 'a').begin()).toMatchObject({ acquired: false, record: { state: 'completed' } })
    expect(await claimant(store, 'b').begin()).toMatchObject({ acquired: false, record: { state: 'in-flight' } })
    clock.advance(LEASE_MS)
    expect(await claimant(store, 'b').begin()).toMatchObject({ acquired: true, attempt: 2 })
  })

  test('takes a claim again once one failed', async () => {
    const store = new MemoryStore({ maxEntries: 1 })
    const a = claimant(store, 'a')
    await a.begin()
    await a.fail()
    expect(await claimant(store, 'b').begin()).toMatchObject({ acquired: true })
    await expect(claimant(store, 'a').begin()).rejects.toMatchObject(FULL)
  })

  test('drops expired records first, and only those', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxEntries: 2, now: clock.now })
    const a = claimant(store, 'a')
    await a.begin()
    await a.complete()
    clock.advance(RETENTION_MS - 1)
    await claimant(store, 'b').begin()
    await expect(claimant(store, 'c').begin()).rejects.toMatchObject(FULL)
    clock.advance(1)
    expect(await claimant(store, 'c').begin()).toMatchObject({ acquired: true, attempt: 1 })
    expect(await stateOf(store, 'b')).toBe('in-flight')
    await expect(claimant(store, 'd').begin()).rejects.toMatchObject(FULL)
  })

  test('finds an expired record behind older ones that are kept longer', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxEntries: 3, now: clock.now })
    await claimant(store, 'long', 10 * RETENTION_MS).begin()
    await claimant(store, 'short').begin()
    const completed = claimant(store, 'completed')
    await completed.begin()
    await completed.complete()
    clock.advance(RETENTION_MS)
    expect(await claimant(store, 'd').begin()).toMatchObject({ acquired: true })
    expect(await claimant(store, 'e').begin()).toMatchObject({ acquired: true })
    await expect(claimant(store, 'f').begin()).rejects.toMatchObject(FULL)
    expect(await stateOf(store, 'long')).toBe('in-flight')
  })

  test('takes an expired key anew in its own place', async () => {
    const clock = fakeClock(0)
    const store = new MemoryStore({ maxEntries: 1, now: clock.now })
    const a = claimant(store, 'a')
    await a.begin()
    await a.complete()
    clock.advance(RETENTION_MS)
    expect(await claimant(store, 'a').begin()).toMatchObject({ acquired: true, attempt: 1 })
    await expect(claimant(store, 'b').begin()).rejects.toMatchObject(FULL)
  })
})

describe('a store that is full by bytes', () => {
  test('refuses a claim, and takes one again once the bytes are gone', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxBytes: 10 * KIB, now: clock.now })
    const a = claimant(store, 'a')
    await a.begin()
    await a.complete(answerOf(10 * KIB))
    await expect(claimant(store, 'b').begin()).rejects.toMatchObject(FULL)
    clock.advance(RETENTION_MS)
    expect(await claimant(store, 'b').begin()).toMatchObject({ acquired: true })
  })

  test('counts bodies, header names and values, status messages and keys', async () => {
    const bytes = 4.5 * KIB
    const text = 'x'.repeat(bytes)
    const plain = answerOf(0)
    const takes = async (key: string, answer: typeof plain) => {
      const store = new MemoryStore({ maxBytes: 5 * KIB })
      const owner = claimant(store, key)
      await owner.begin()
      await owner.complete(answer)
      return claimant(store, 'another')
        .begin()
        .then(
          () => 'little',
          () => 'much',
        )
    }
    expect(await takes('a', plain)).toBe('little')
    expect(await takes(text, plain)).toBe('much')
    expect(await takes('a', answerOf(bytes))).toBe('much')
    expect(await takes('a', { ...plain, headers: [[text, '']] })).toBe('much')
    expect(await takes('a', { ...plain, headers: [['x-long', text]] })).toBe('much')
    expect(await takes('a', { ...plain, statusMessage: text })).toBe('much')
  })

  test('stores the completion of a claim that was made, however large', async () => {
    const store = new MemoryStore({ maxBytes: 2 * KIB })
    const [a, b] = [claimant(store, 'a'), claimant(store, 'b')]
    await a.begin()
    await b.begin()
    expect(await a.complete(answerOf(100 * KIB))).toEqual({ ok: true })
    expect(await b.complete(answerOf(100 * KIB))).toEqual({ ok: true })
    expect(await claimant(store, 'a').begin()).toMatchObject({ record: { answer: { body: { length: 100 * KIB } } } })
    expect(await claimant(store, 'b').begin()).toMatchObject({ record: { answer: { body: { length: 100 * KIB } } } })
  })

  test('renews, and keeps an uncertain failure', async () => {
    const store = new MemoryStore({ maxEntries: 1 })
    const a = claimant(store, 'a')
    await a.begin()
    expect(await a.renew()).toEqual({ ok: true })
    expect(await claimant(store, 'lost').renew()).toEqual({ ok: true, restored: true })
    expect(await a.fail({ uncertain: true })).toEqual({ ok: true })
    expect(await stateOf(store, 'lost')).toBe('in-flight')
    expect(await stateOf(store, 'a')).toBe('failed')
  })
})

test('clear() forgets every record: in flight, completed and failed', async () => {
  const store = new MemoryStore({ maxEntries: 3 })
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((key) => claimant(store, key)) as [
    Claimant,
    Claimant,
    Claimant,
    Claimant,
  ]
  await a.begin()
  await b.begin()
  await b.complete()
  await c.begin()
  await c.fail({ uncertain: true })
  store.clear()
  await d.begin()
  await d.fail()
  store.clear()
  const first = { acquired: true, attempt: 1, previousOutcome: 'none' }
  for (const key of ['b', 'c', 'd']) expect(await claimant(store, key).begin()).toEqual(first)
  await expect(claimant(store, 'a').begin()).rejects.toMatchObject(FULL)
})

describe('the clock', () => {
  test('is the one that was given', async () => {
    const clock = fakeClock(0)
    const store = new MemoryStore({ now: clock.now })
    await claimant(store, 'a').begin()
    clock.advance(LEASE_MS - 1)
    expect(await claimant(store, 'a').begin()).toMatchObject({ record: { leaseRemainingMs: 1 } })
    clock.advance(1)
    expect(await claimant(store, 'a').begin()).toMatchObject({ acquired: true, attempt: 2 })
  })

  test('ends no lease when the wall clock is set, and does when time passes', async () => {
    vi.useFakeTimers()
    const store = new MemoryStore()
    await claimant(store, 'a').begin()
    vi.setSystemTime(Date.now() + 10 * RETENTION_MS)
    expect(await claimant(store, 'a').begin()).toMatchObject({ acquired: false })
    vi.advanceTimersByTime(LEASE_MS)
    expect(await claimant(store, 'a').begin()).toMatchObject({ acquired: true, attempt: 2 })
  })
})

type Claimant = ReturnType<typeof claimant>

describe('options', () => {
  test('that are wrong are told all at once, with a hint', () => {
    // biome-ignore lint/suspicious/noExplicitAny: what a JavaScript user may write.
    const wrong: any = { maxByte: 5, maxEntries: 0, maxScopeShare: 0, whenFull: 'drop', now: 7, maxBytes: '1 GiB' }
    const lines = [
      'The options of MemoryStore are invalid:',
      '  - maxByte: did you mean maxBytes?',
      '  - maxBytes: expected an integer from 1 to 9007199254740991; seen: "1 GiB"',
      '  - maxEntries: expected an integer from 1 to 9007199254740991; seen: 0',
      '  - maxScopeShare: expected a number above 0, and at most 1; seen: 0',
      '  - whenFull: expected "refuse" or "evict"; seen: "drop"',
      '  - now: expected a function; seen: 7',
      'See once-per-key/docs/errors.md#options_invalid',
    ]
    expect(() => new MemoryStore(wrong)).toThrow(
      expect.objectContaining({ code: 'options_invalid', message: lines.join('\n') }),
    )
  })

  test.each([null, 5, 'records'])('that are %j are a mistake', (given) => {
    const lines = [
      'The options of MemoryStore are invalid:',
      `  - expected options, such as { maxBytes: … }; seen: ${given === null ? 'null' : `a ${typeof given}`}`,
      'See once-per-key/docs/errors.md#options_invalid',
    ]
    expect(() => new MemoryStore(given as never)).toThrow(
      expect.objectContaining({ code: 'options_invalid', message: lines.join('\n') }),
    )
  })

  test('that are undefined are as if left out', async () => {
    // biome-ignore lint/suspicious/noExplicitAny: what a JavaScript user may write.
    const store = new MemoryStore({ maxBytes: undefined, now: undefined } as any)
    expect(await claimant(store, 'a').begin()).toMatchObject({ acquired: true })
  })
})

test('each command replies at once, and one for which there is no room throws at once', () => {
  const store = new MemoryStore({ maxEntries: 1 })
  const own = { token: 't', scope: 'acme', fingerprint: 'f', attempt: 1, uncertain: false, retentionMs: RETENTION_MS }
  const claim = { ...own, leaseMs: LEASE_MS, unknownOutcome: 'rerun' } as const
  expect(store.begin('k', claim)).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
  expect(store.renew('k', claim)).toEqual({ ok: true })
  expect(() => store.begin('another', { ...claim, token: 'u' })).toThrow(expect.objectContaining(FULL))
  expect(store.complete('k', { ...own, answer: answerOf(1) })).toEqual({ ok: true })
  expect(store.inspect('k')).toMatchObject({ state: 'completed' })
  expect(store.release('failed', { ...own, token: 'u', failedMs: FAILED_MS })).toEqual({ ok: true })
  expect(store.resolve('none', { token: 'o', attempt: 1, answer: null, retentionMs: 1 })).toEqual({
    ok: false,
    record: null,
  })
})

test('results of steps beyond the store are not kept, and the next attempt is claimed with the others', async () => {
  for (const maxEntries of [1, 100]) {
    const store = new MemoryStore({ maxBytes: 20 * KIB, maxEntries, maxScopeShare: 1 })
    const once = runner({ store, name: 'jobs', onEvent() {} })
    const attempt = () =>
      once({ scope: 'acme', key: '1', input: null }, async ({ step, previousOutcome }) => {
        const results: string[] = []
        for (let i = 0; i < 60; i++) {
          const result = step(`step ${i}`, () => previousOutcome.repeat(2 * KIB))
          results.push(await result.then((text) => text.slice(0, 4)).catch(({ code }) => code))
        }
        if (previousOutcome === 'none') throw new Error('The process died.')
        return results
      })
    await expect(attempt()).rejects.toThrow('died')
    expect(await attempt()).toEqual([...Array(2).fill('none'), ...Array(58).fill('step_not_kept')])
  }
})
