import type { StoreEvent } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { answerOf, claimant, RETENTION_MS, stateOf } from './claimant.js'

const FULL = { code: 'store_full' }
const KIB = 1024

describe("whenFull: 'evict'", () => {
  test('drops the oldest completed record, with an event, and never one in flight or uncertain', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxEntries: 3, whenFull: 'evict', now: clock.now })
    const events: StoreEvent[] = []
    store.observe((event) => events.push(event))
    await claimant(store, 'in-flight').begin()
    const uncertain = claimant(store, 'uncertain')
    await uncertain.begin()
    await uncertain.fail({ uncertain: true })
    // The one that is kept for less is the newer one: age decides, not what is left.
    for (const [key, retentionMs] of [
      ['older', RETENTION_MS],
      ['newer', RETENTION_MS / 2],
    ] as const) {
      const owner = claimant(store, key, retentionMs)
      await owner.begin()
      await owner.complete()
      clock.advance(1)
    }
    expect(events).toEqual([])
    expect(await claimant(store, 'next').begin()).toMatchObject({ acquired: true })
    expect(events).toEqual([{ type: 'evicted', state: 'completed' }])
    expect(await stateOf(store, 'newer')).toBe('completed')
    expect(await stateOf(store, 'in-flight')).toBe('in-flight')
    expect(await stateOf(store, 'uncertain')).toBe('failed')

    await claimant(store, 'and next').begin()
    expect(events).toHaveLength(2)
    await expect(claimant(store, 'one too many').begin()).rejects.toMatchObject(FULL)
    expect(await stateOf(store, 'in-flight')).toBe('in-flight')
    expect(await stateOf(store, 'uncertain')).toBe('failed')
  })

  test('drops as many as the bytes need', async () => {
    const store = new MemoryStore({ maxBytes: 8 * KIB, whenFull: 'evict' })
    const events: StoreEvent[] = []
    store.observe((event) => events.push(event))
    const owners = ['a', 'b', 'c'].map((key) => claimant(store, key))
    for (const owner of owners) await owner.begin()
    for (const owner of owners) await owner.complete(answerOf(4 * KIB))
    await claimant(store, 'd').begin()
    expect(events).toHaveLength(2)
    expect(await stateOf(store, 'c')).toBe('completed')
  })

  test('for a scope that has none, drops the oldest of all: age decides, not what is left', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxEntries: 3, maxScopeShare: 1, whenFull: 'evict', now: clock.now })
    for (const [scope, retentionMs] of [
      ['first', RETENTION_MS],
      ['second', RETENTION_MS / 2],
      ['third', RETENTION_MS],
    ] as const) {
      const owner = claimant(store, scope, retentionMs, scope)
      await owner.begin()
      await owner.complete()
      clock.advance(1)
    }
    const kept = () => ['first', 'second', 'third'].filter((key) => store.inspect(key) !== null)
    expect(await claimant(store, 'next', RETENTION_MS, 'next').begin()).toMatchObject({ acquired: true })
    expect(kept()).toEqual(['second', 'third'])
    expect(await claimant(store, 'and next', RETENTION_MS, 'next').begin()).toMatchObject({ acquired: true })
    expect(kept()).toEqual(['third'])
  })

  test('drops expired records first, without an event', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxEntries: 2, whenFull: 'evict', now: clock.now })
    const events: StoreEvent[] = []
    store.observe((event) => events.push(event))
    const lasting = claimant(store, 'lasting', 2 * RETENTION_MS)
    await lasting.begin()
    await lasting.complete()
    await claimant(store, 'expiring').begin()
    clock.advance(RETENTION_MS)
    await claimant(store, 'next').begin()
    expect(events).toEqual([])
    expect(await stateOf(store, 'lasting')).toBe('completed')
  })

  test('drops nothing where that makes no room', async () => {
    const store = new MemoryStore({ maxBytes: 4 * KIB, whenFull: 'evict' })
    const events: StoreEvent[] = []
    store.observe((event) => events.push(event))
    const completed = claimant(store, 'completed')
    await completed.begin()
    await completed.complete()
    await expect(claimant(store, 'x'.repeat(5 * KIB)).begin()).rejects.toMatchObject(FULL)
    expect(events).toEqual([])
    expect(await stateOf(store, 'completed')).toBe('completed')
  })

  test('is not the default', async () => {
    const store = new MemoryStore({ maxEntries: 1 })
    const completed = claimant(store, 'completed')
    await completed.begin()
    await completed.complete()
    await expect(claimant(store, 'next').begin()).rejects.toMatchObject(FULL)
  })

  test('a listener that throws, or calls the store, changes nothing', async () => {
    const store = new MemoryStore({ maxEntries: 1, whenFull: 'evict' })
    const inner: Promise<unknown>[] = []
    store.observe(() => {
      inner.push(claimant(store, 'next').begin())
      throw new Error('a mistake of the listener')
    })
    const completed = claimant(store, 'completed')
    await completed.begin()
    await completed.complete()
    expect(await claimant(store, 'next').begin()).toMatchObject({ acquired: true, attempt: 1 })
    expect(await Promise.all(inner)).toMatchObject([{ acquired: false, record: { state: 'in-flight' } }])
  })
})
