import { MemoryStore } from 'once-per-key/memory'
import { storeLaws } from 'once-per-key/testing'
import { onTestFinished, test, vi } from 'vitest'

test.each([
  {
    when: 'whose clock counts whole milliseconds keeps a law that was nearly too slow to tell',
    // When 199.4 of 200 ms have passed, and 200 of the store's own. In the next try, of 400 ms: within them, and then behind their end.
    clock: [200.3, 500, 1_000],
  },
  {
    when: 'that is late by less than the unit of a law, but by more than half of it, is tried again',
    // When 186 of 200 ms have passed, in place of 150: of the 50 that are due, 14 are left. In the next try it is not late.
    clock: [186.9, 487, 700],
  },
])('a store $when', async ({ clock: atWalk }) => {
  let nowMs = 0.9
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  onTestFinished(() => void clock.mockRestore())

  const store = new MemoryStore({ now: () => Math.floor(nowMs) })
  const list = store.list.bind(store)
  let walks = 0
  vi.spyOn(store, 'list').mockImplementation(() => {
    nowMs = atWalk[walks++] ?? nowMs
    return list()
  })

  const laws = new Map<string, () => Promise<void>>()
  storeLaws(
    (name, law) => laws.set(name, law),
    async () => ({ store }),
    { operable: true, listable: true },
  )
  await laws.get('list: skips expired records')?.()
})
