import { LRUCache } from 'lru-cache'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { claimant, RETENTION_MS } from './claimant.js'

const RECORDS = 100_000
const BEGINS = 100

// Time to fill a store; nothing is asserted about it.
vi.setConfig({ testTimeout: 60_000 })

let looks = 0

/** Counts the records that iterations hand out. */
beforeEach(() => {
  looks = 0
  for (const name of ['keys', 'rkeys', 'values', 'rvalues', 'entries', 'rentries'] as const) {
    const iterate = LRUCache.prototype[name] as () => Generator<unknown>
    vi.spyOn(LRUCache.prototype, name).mockImplementation(function* (this: LRUCache<string, object>) {
      for (const each of iterate.call(this)) {
        looks++
        yield each
      }
    } as never)
  }
})

afterEach(() => {
  vi.restoreAllMocks()
})

async function filled(
  options: ConstructorParameters<typeof MemoryStore>[0],
  key: string,
  ends: 'never' | 'fail' | 'complete',
  times = RECORDS,
) {
  const store = new MemoryStore({ maxEntries: RECORDS, maxBytes: 2 ** 40, ...options })
  for (let i = 0; i < times; i++) {
    const owner = claimant(store, `${key} ${i}`)
    await owner.begin()
    if (ends === 'complete') await owner.complete()
    else if (ends === 'fail') await owner.fail({ uncertain: true })
  }
  looks = 0
  return store
}

async function begin(store: MemoryStore, times = BEGINS): Promise<string[]> {
  const results: string[] = []
  for (let i = 0; i < times; i++) {
    const outcome = claimant(store, `new ${i}`).begin()
    results.push(
      await outcome.then(
        ({ acquired }) => (acquired ? 'acquired' : 'refused'),
        () => 'full',
      ),
    )
  }
  return results
}

/** A few looks at the oldest records for each begin: far from the 100,000 of a single scan. */
const FEW = BEGINS * 20

test('a store with room looks at no other record', async () => {
  const store = await filled({ maxEntries: 2 * RECORDS }, 'completed', 'complete')
  expect(await begin(store)).toEqual(Array(BEGINS).fill('acquired'))
  expect(looks).toBe(0)
})

test('a full store refuses without a scan', async () => {
  const store = await filled({}, 'completed', 'complete')
  expect(await begin(store)).toEqual(Array(BEGINS).fill('full'))
  expect(looks).toBeLessThan(FEW)
})

test('a full store finds what expired behind older records that are kept longer without a scan', async () => {
  const clock = fakeClock()
  const store = await filled({ now: clock.now }, 'lasting', 'complete', RECORDS - BEGINS)
  for (let i = 0; i < BEGINS; i++) {
    await claimant(store, `short ${i}`, RETENTION_MS / 2).begin()
    clock.advance(1)
  }
  clock.advance(RETENTION_MS / 2 - BEGINS)
  looks = 0
  for (let i = 0; i < BEGINS; i++) {
    expect(await claimant(store, `new ${i}`).begin()).toMatchObject({ acquired: true })
    clock.advance(1)
  }
  expect(looks).toBeLessThan(FEW)
})

test('a store that evicts goes past older records in flight without a scan', async () => {
  const store = await filled({ whenFull: 'evict' }, 'in flight', 'never', RECORDS - BEGINS)
  for (let i = 0; i < BEGINS; i++) {
    const owner = claimant(store, `completed ${i}`)
    await owner.begin()
    await owner.complete()
  }
  looks = 0
  expect(await begin(store)).toEqual(Array(BEGINS).fill('acquired'))
  expect(looks).toBeGreaterThan(0)
  expect(looks).toBeLessThan(FEW)
})

test('the oldest of many failures is forgotten without a scan', async () => {
  const store = await filled({ maxUncertainBytes: 610 * RECORDS }, 'uncertain', 'fail')
  const events: string[] = []
  store.observe(({ type }) => events.push(type))
  for (let i = 0; i < BEGINS; i++) {
    const failing = claimant(store, `uncertain ${RECORDS + i}`)
    await failing.begin()
    await failing.fail({ uncertain: true })
  }
  expect(events.length).toBeGreaterThanOrEqual(BEGINS)
  expect(looks).toBeLessThan(FEW)
})

test('retentions that were used once, and whose records are gone, cost nothing', async () => {
  const store = new MemoryStore()
  for (let i = 0; i < 1_000; i++) {
    const failing = claimant(store, `failing ${i}`, RETENTION_MS + i)
    await failing.begin()
    await failing.fail()
  }
  const peek = vi.spyOn(LRUCache.prototype, 'peek')
  await claimant(store, 'new').begin()
  expect(peek.mock.calls.length).toBeLessThan(10)
})
