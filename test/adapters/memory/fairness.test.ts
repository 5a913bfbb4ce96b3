import fc from 'fast-check'
import { SINGLE_TENANT, type StoreEvent } from 'once-per-key/core'
import { createRequestEngine, singleTenant } from 'once-per-key/http'
import { MemoryStore, type MemoryStoreOptions } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { requestFacts } from '../../support/request-facts.js'
import { answerOf, claimant, RETENTION_MS, stateOf } from './claimant.js'

const FULL = { code: 'store_full' }
const KIB = 1024
const MIB = 1024 * KIB

type Shares = Pick<MemoryStoreOptions, 'maxScopeShare'>

/** A store, and merchants that use it. */
function shared(options: MemoryStoreOptions = {}) {
  const events: StoreEvent[] = []
  const store = new MemoryStore(options)
  store.observe((event) => events.push(event))
  const of = (scope: string, key: string) => claimant(store, `${scope}:${key}`, RETENTION_MS, scope)
  return {
    store,
    events,
    of,
    async completes(scope: string, key: string, bytes = 0): Promise<boolean> {
      const owner = of(scope, key)
      const claimed = await owner.begin().then(
        ({ acquired }) => acquired,
        () => false,
      )
      if (claimed) await owner.complete(answerOf(bytes))
      return claimed
    },
    /** Whether there was room. */
    async fails(scope: string, key: string, uncertain = true): Promise<boolean> {
      const owner = of(scope, key)
      const claimed = await owner.begin().then(
        ({ acquired }) => acquired,
        () => false,
      )
      if (claimed) await owner.fail({ uncertain })
      return claimed
    },
  }
}

/** How many of the keys 0, 1, 2 … a scope completes until it is refused. */
async function filledBy(store: ReturnType<typeof shared>, scope: string, bytes = 0): Promise<number> {
  for (let i = 0; ; i++) if (!(await store.completes(scope, `${i}`, bytes))) return i
}

describe('a scope', () => {
  test('is refused once it holds more than is still free, and others are not', async () => {
    const store = shared({ maxEntries: 100 })
    expect(await filledBy(store, 'greedy')).toBe(51)
    await expect(store.of('greedy', 'more').begin()).rejects.toMatchObject(FULL)
    expect(await store.completes('newcomer', '1')).toBe(true)
  })

  test('is told why', async () => {
    const store = shared({ maxEntries: 10 })
    await filledBy(store, 'greedy')
    const message = expect.stringMatching(/the claiming scope holds more than is still free.*raise maxScopeShare/s)
    await expect(store.of('greedy', 'more').begin()).rejects.toMatchObject({ ...FULL, message })
  })

  test('holds its share in bytes as well', async () => {
    const store = shared({ maxBytes: MIB })
    const answers = await filledBy(store, 'greedy', 10 * KIB)
    expect(answers).toBeGreaterThan(45)
    expect(answers).toBeLessThan(80) // Without an answer, once that no longer fits.
    expect(await store.completes('newcomer', '1', 10 * KIB)).toBe(true)
  })

  test.each<[Shares, number]>([
    [{ maxScopeShare: 1 }, 100],
    [{ maxScopeShare: 0.8 }, 81],
    [{}, 51],
    [{ maxScopeShare: 0.2 }, 21],
  ])('has with %j all but what others would need: %i of 100', async (options, records) => {
    expect(await filledBy(shared({ maxEntries: 100, ...options }), 'greedy')).toBe(records)
  })

  test('has as much again after clear(), also when what was dropped would have expired', async () => {
    const clock = fakeClock()
    const store = shared({ maxEntries: 100, now: clock.now })
    for (const afterMs of [0, RETENTION_MS]) {
      expect(await filledBy(store, 'greedy')).toBe(51)
      store.store.clear()
      clock.advance(afterMs)
    }
    expect(await filledBy(store, 'greedy')).toBe(51)
  })

  test('that shares with no other has all of it', async () => {
    expect(await filledBy(shared({ maxEntries: 100 }), SINGLE_TENANT)).toBe(100)
  })

  test.each<[string, () => string, number]>([
    ['that is named as a single tenant shares like any other', () => 'single-tenant', 51],
    ['that is named as the mark of one, too', () => SINGLE_TENANT, 51],
    ['of an application that has no other has all of it', singleTenant, 100],
  ])('%s', async (_what, scope, most) => {
    const engine = createRequestEngine({ store: new MemoryStore({ maxEntries: 100 }), scope })
    let claimed = 0
    while ((await engine.decide(requestFacts({ key: `${claimed}` }))).action === 'execute') claimed++
    expect(claimed).toBe(most)
  })

  test('claims again once its records have expired', async () => {
    const clock = fakeClock()
    const store = shared({ maxEntries: 10, now: clock.now })
    await filledBy(store, 'greedy')
    clock.advance(RETENTION_MS)
    expect(await store.completes('greedy', 'more')).toBe(true)
  })

  test('still gets the answers that it has, renews, completes and fails', async () => {
    const store = shared({ maxEntries: 4 })
    const running = store.of('greedy', 'running')
    await running.begin()
    await filledBy(store, 'greedy')
    expect(await store.of('greedy', '0').begin()).toMatchObject({ record: { state: 'completed' } })
    expect(await running.renew()).toEqual({ ok: true })
    expect(await running.complete()).toEqual({ ok: true })
  })

  test('counts what it has in flight', async () => {
    const store = shared({ maxEntries: 10 })
    for (let i = 0; i < 6; i++) await store.of('greedy', `${i}`).begin()
    await expect(store.of('greedy', 'more').begin()).rejects.toMatchObject(FULL)
    expect(await store.completes('newcomer', '1')).toBe(true)
  })
})

describe('an answer that would pass the share', () => {
  test('is not kept, with an event; that the operation was completed is', async () => {
    const store = shared({ maxBytes: 100 * KIB })
    expect(await store.completes('greedy', '1', 40 * KIB)).toBe(true)
    expect(store.events).toEqual([])
    expect(await store.completes('greedy', '2', 40 * KIB)).toBe(true)
    expect(store.events).toEqual([{ type: 'answer_dropped' }])
    expect(await store.of('greedy', '2').begin()).toMatchObject({
      record: { state: 'completed', answer: { body: null } },
    })
    expect(await store.of('greedy', '1').begin()).toMatchObject({ record: { answer: { body: { length: 40 * KIB } } } })
    expect(await store.completes('newcomer', '1', 10 * KIB)).toBe(true)
    expect(await store.of('newcomer', '1').begin()).toMatchObject({
      record: { answer: { body: { length: 10 * KIB } } },
    })
  })

  test('stays not kept when it is sent again', async () => {
    const store = shared({ maxBytes: 10 * KIB })
    const owner = store.of('greedy', '1')
    await owner.begin()
    await owner.complete(answerOf(9 * KIB))
    expect(await owner.complete(answerOf(0))).toEqual({ ok: true })
    expect(await store.of('greedy', '1').begin()).toMatchObject({ record: { answer: { body: null } } })
    expect(store.events).toHaveLength(1)
  })

  test('is none of a claim that kept to the share by count: an answer is no further record', async () => {
    const store = shared({ maxEntries: 1 })
    await store.completes('acme', '1')
    expect(await store.of('acme', '1').begin()).toMatchObject({ record: { answer: { body: { length: 0 } } } })
    const more = shared({ maxEntries: 100 })
    await filledBy(more, 'greedy')
    expect(await more.of('greedy', '50').begin()).toMatchObject({ record: { answer: { body: { length: 0 } } } })
    expect([store.events, more.events]).toEqual([[], []])
  })

  test('is kept where the share is all, and where what has expired makes room', async () => {
    const clock = fakeClock()
    for (const options of [{ maxScopeShare: 1 }, { now: clock.now }]) {
      const store = shared({ maxBytes: 100 * KIB, ...options })
      await store.completes('greedy', '1', 40 * KIB)
      clock.advance(RETENTION_MS)
      await store.completes('greedy', '2', 40 * KIB)
      expect(await store.of('greedy', '2').begin()).toMatchObject({
        record: { answer: { body: { length: 40 * KIB } } },
      })
      expect(store.events).toEqual([])
    }
  })
})

describe("whenFull: 'evict'", () => {
  test("begins with the claiming scope's own records, and leaves others alone", async () => {
    const store = shared({ maxEntries: 10, whenFull: 'evict' })
    await store.completes('careful', '1')
    for (let i = 0; i < 100; i++) expect(await store.completes('greedy', `${i}`)).toBe(true)
    expect(store.events.length).toBeGreaterThan(90)
    expect(await stateOf(store.store, 'careful:1')).toBe('completed')
    expect(await stateOf(store.store, 'greedy:99')).toBe('completed')
  })

  test("makes room for a large answer with the scope's own older ones", async () => {
    const store = shared({ maxBytes: 100 * KIB, whenFull: 'evict' })
    await store.completes('careful', '1', 10 * KIB)
    for (let i = 0; i < 10; i++) await store.completes('greedy', `${i}`, 30 * KIB)
    expect(await store.of('greedy', '9').begin()).toMatchObject({ record: { answer: { body: { length: 30 * KIB } } } })
    expect(await stateOf(store.store, 'careful:1')).toBe('completed')
    expect(store.events).toEqual(Array(9).fill({ type: 'evicted', state: 'completed' }))
  })

  test('evicts nothing for the answer to a claim that kept to the share by count', async () => {
    const store = shared({ maxEntries: 2, whenFull: 'evict' })
    await store.completes('acme', '1')
    await store.completes('acme', '2')
    expect(store.events).toEqual([])
    expect(await stateOf(store.store, 'acme:1')).toBe('completed')
  })

  test('evicts nothing for an answer that has no room in any case', async () => {
    const store = shared({ maxBytes: 100 * KIB, whenFull: 'evict' })
    for (let i = 0; i < 3; i++) await store.completes('greedy', `${i}`, 10 * KIB)
    await store.completes('greedy', 'large', 90 * KIB)
    expect(store.events).toEqual([{ type: 'answer_dropped' }])
  })

  test("refuses a scope whose own records are all in flight, rather than evict another's", async () => {
    const store = shared({ maxEntries: 10, whenFull: 'evict' })
    await store.completes('careful', '1')
    for (let i = 0; i < 5; i++) await store.of('greedy', `${i}`).begin()
    await expect(store.of('greedy', 'more').begin()).rejects.toMatchObject(FULL)
    expect(store.events).toEqual([])
  })
})

describe('failures that may have had an effect', () => {
  test('take nothing of the room for claims, however many there are', async () => {
    const store = shared({ maxBytes: MIB, maxEntries: 100 })
    for (let i = 0; i < 5_000; i++) await store.fails('acme', `failed ${i}`)
    expect(await filledBy(store, 'another')).toBe(51)
  })

  test.each(['refuse', 'evict'] as const)(
    'are kept until they expire: beyond their budget new claims are refused (%s)',
    async (whenFull) => {
      const clock = fakeClock()
      const store = shared({ maxBytes: 4 * MIB, maxScopeShare: 1, whenFull, now: clock.now })
      let failed = 0
      while (await store.fails('acme', `${failed}`)) failed++
      expect(failed).toBeGreaterThan(4_000) // Half of the store, at less than 500 bytes each.
      expect(failed).toBeLessThan(6_000)
      await expect(store.of('acme', 'next').begin()).rejects.toMatchObject({
        ...FULL,
        message: expect.stringMatching(/maxUncertainBytes/),
      })
      for (let i = 0; i < failed; i++) {
        expect(await store.store.inspect(`acme:${i}`)).toMatchObject({ state: 'failed', uncertain: true })
      }
      expect(store.events).toEqual([])
      clock.advance(RETENTION_MS)
      expect(await store.fails('acme', 'next')).toBe(true)
    },
  )

  test('beyond their budget may be run again and settled, and what is in flight ends as it must', async () => {
    const store = shared({ maxUncertainBytes: 4 * KIB, maxScopeShare: 1 })
    const running = [store.of('acme', 'paid'), store.of('acme', 'refused'), store.of('acme', 'unknown')] as const
    for (const owner of running) await owner.begin()
    while (await store.fails('acme', `${Math.random()}`));
    expect(await running[0].renew()).toEqual({ ok: true })
    expect(await running[0].complete()).toEqual({ ok: true })
    expect(await running[1].fail()).toEqual({ ok: true })
    expect(await running[2].fail({ uncertain: true })).toEqual({ ok: true })
    expect(await store.of('acme', 'unknown').begin()).toMatchObject({ acquired: true, previousOutcome: 'unknown' })
  })

  test('have their room from the beginning of a claim: any that is in flight may become one', async () => {
    const store = shared({ maxUncertainBytes: 4 * KIB, maxScopeShare: 1 })
    const running = Array.from({ length: 20 }, (_, i) => store.of('acme', `${i}`))
    const accepted: typeof running = []
    for (const owner of running) await owner.begin().then(() => accepted.push(owner), String)
    expect(accepted.length).toBeGreaterThan(5)
    expect(accepted.length).toBeLessThan(20)
    await Promise.all(accepted.map((owner) => owner.fail({ uncertain: true })))
    expect(await store.store.inspect('acme:0')).toMatchObject({ state: 'failed', uncertain: true })
    await accepted[0]?.complete()
    expect(await store.fails('acme', 'next')).toBe(false)
  })

  test('of a bank that is down for a day, a hundred a second, close the store for no other scope', async () => {
    const clock = fakeClock()
    const store = shared({ maxBytes: 2 * MIB, now: clock.now })
    for (let i = 0; i < 20_000; i++) {
      await store.fails(`merchant ${i % 10}`, `${i}`)
      clock.advance(10)
    }
    expect(await store.completes('merchant 3', 'next')).toBe(false)
    expect(await store.completes('newcomer', '1')).toBe(true)
  })

  test('of one scope push out none, neither of another nor of its own', async () => {
    const store = shared({ maxUncertainBytes: 64 * KIB })
    await store.fails('careful', '1')
    const failed: number[] = []
    for (let i = 0; i < 1_000; i++) if (await store.fails('greedy', `${i}`)) failed.push(i)
    expect(failed.length).toBeGreaterThan(50)
    expect(failed.length).toBeLessThan(100)
    expect(await store.fails('newcomer', '1')).toBe(true)
    expect(await store.of('careful', '1').begin()).toMatchObject({ previousOutcome: 'unknown' })
    expect(await store.of('newcomer', '1').begin()).toMatchObject({ previousOutcome: 'unknown' })
    for (const i of failed) {
      expect(await store.of('greedy', `${i}`).begin()).toMatchObject({ previousOutcome: 'unknown' })
    }
  })

  test('that have expired go first, without an event', async () => {
    const clock = fakeClock()
    const store = shared({ maxUncertainBytes: 64 * KIB, now: clock.now })
    for (let i = 0; i < 40; i++) await store.fails('acme', `${i}`)
    clock.advance(RETENTION_MS)
    for (let i = 0; i < 40; i++) await store.fails('acme', `again ${i}`)
    expect(store.events).toEqual([])
  })

  test('are claimed again only where there is room', async () => {
    const store = shared({ maxEntries: 1 })
    await store.fails('acme', 'failed')
    await store.of('acme', 'running').begin()
    await expect(store.of('acme', 'failed').begin()).rejects.toMatchObject(FULL)
    expect(await stateOf(store.store, 'acme:failed')).toBe('failed')
  })

  test('of more scopes than the budget has room for: the first are kept, and the next refused', async () => {
    const store = shared({ maxUncertainBytes: 10 * KIB })
    const failed: number[] = []
    for (let i = 0; i < 100; i++) if (await store.fails(`merchant ${i}`, '1')) failed.push(i)
    expect(failed.length).toBeGreaterThan(16)
    expect(failed.length).toBeLessThanOrEqual(29)
    for (const i of failed) expect(await store.store.inspect(`merchant ${i}:1`)).toMatchObject({ state: 'failed' })
  })
})

test('certain failures of one scope push out none of another', async () => {
  const store = shared({ maxBytes: 4 * KIB })
  await store.fails('careful', '1', false)
  for (let i = 0; i < 2_000; i++) await store.fails('greedy', `${i}`, false)
  expect(await store.of('careful', '1').begin()).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  expect(store.events).toEqual([])
})

test.each(['refuse', 'evict'] as const)(
  'whatever greedy scopes do (%s), a newcomer finds room, and no record of another is touched',
  async (whenFull) => {
    const act = fc.record({
      scope: fc.constantFrom('a', 'b', 'c', 'd'),
      kind: fc.constantFrom('claim', 'complete', 'large', 'uncertain', 'certain'),
    })
    let evictions = 0
    let refusals = 0
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 100, maxLength: 300, size: 'max' }), async (acts) => {
        const store = shared({ maxBytes: 40 * KIB, maxEntries: 40, maxUncertainBytes: 8 * KIB, whenFull })
        const careful = store.of('careful', 'paid')
        await careful.begin()
        await careful.complete(answerOf(KIB))
        await store.fails('careful', 'unknown')
        for (const [i, { scope, kind }] of acts.entries()) {
          const owner = store.of(scope, `${i}`)
          const claimed = await owner.begin().catch(() => null)
          if (claimed === null) refusals++
          else if (kind === 'complete') await owner.complete()
          else if (kind === 'large') await owner.complete(answerOf(8 * KIB))
          else if (kind !== 'claim') await owner.fail({ uncertain: kind === 'uncertain' })
        }
        evictions += store.events.length
        expect(await store.completes('newcomer', '1')).toBe(true)
        expect(await store.of('careful', 'paid').begin()).toMatchObject({
          record: { answer: { body: { length: KIB } } },
        })
        expect(await store.store.inspect('careful:unknown')).toMatchObject({ state: 'failed', uncertain: true })
      }),
      { numRuns: 100 },
    )
    expect(evictions).toBeGreaterThan(100)
    expect(refusals).toBeGreaterThan(100)
  },
)
