import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { claimant, FAILED_MS, RETENTION_MS, stateOf } from './claimant.js'

const KIB = 1024

describe('certain failures', () => {
  test('push out no record, however many there are', async () => {
    const store = new MemoryStore({ maxEntries: 3, maxBytes: 4 * KIB })
    await claimant(store, 'in-flight').begin()
    const completed = claimant(store, 'completed')
    await completed.begin()
    await completed.complete()
    for (let i = 0; i < 5_000; i++) {
      const failing = claimant(store, `failing ${i}`)
      await failing.begin()
      await failing.fail()
    }
    expect(await stateOf(store, 'in-flight')).toBe('in-flight')
    expect(await stateOf(store, 'completed')).toBe('completed')
  })

  test('are bounded: the oldest is forgotten, the newest kept', async () => {
    const store = new MemoryStore({ maxBytes: 4 * KIB })
    const failing = Array.from({ length: 5_000 }, (_, i) => claimant(store, `failing ${i}`))
    for (const each of failing) {
      await each.begin()
      await each.fail()
    }
    expect(await claimant(store, 'failing 0').begin()).toMatchObject({ acquired: true, attempt: 1 })
    expect(await failing[4_999]?.begin()).toMatchObject({ acquired: false, record: { state: 'failed' } })
    expect(await claimant(store, 'failing 4999').begin()).toMatchObject({ acquired: true, attempt: 2 })
  })

  test('of more scopes than have room for one each: the oldest is forgotten, the newest kept', async () => {
    const store = new MemoryStore({ maxBytes: 4 * KIB })
    const scopes = Array.from({ length: 1_000 }, (_, i) => `merchant ${i}`)
    for (const scope of scopes) await failed(store, scope, scope)
    expect(store.inspect('merchant 0')).toBeNull()
    expect(store.inspect('merchant 998')).toMatchObject({ state: 'failed' })
    expect(store.inspect('merchant 999')).toMatchObject({ state: 'failed' })
  })

  test("that have expired go before a scope's own", async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ maxBytes: 4 * KIB, now: clock.now })
    for (let i = 0; i < 1_000; i++) await failed(store, `merchant ${i}`, `merchant ${i}`)
    clock.advance(FAILED_MS)
    await failed(store, 'own 1', 'acme')
    await failed(store, 'own 2', 'acme')
    expect(store.inspect('own 1')).toMatchObject({ state: 'failed' })
  })

  test('are gone after failedMs', async () => {
    const clock = fakeClock()
    const store = new MemoryStore({ now: clock.now })
    const a = claimant(store, 'a')
    await a.begin()
    await a.fail()
    clock.advance(FAILED_MS - 1)
    expect(await stateOf(store, 'a')).toBe('failed')
    clock.advance(1)
    expect(await claimant(store, 'a').begin()).toMatchObject({ acquired: true, attempt: 1, previousOutcome: 'none' })
  })
})

async function failed(store: MemoryStore, key: string, scope: string): Promise<void> {
  const owner = claimant(store, key, RETENTION_MS, scope)
  await owner.begin()
  await owner.fail()
}
