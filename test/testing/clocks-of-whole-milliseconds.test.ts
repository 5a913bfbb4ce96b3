import { MemoryStore } from 'once-per-key/memory'
import { storeLaws } from 'once-per-key/testing'
import { onTestFinished, test, vi } from 'vitest'

test('a store whose clock counts whole milliseconds keeps a law that was nearly too slow to tell', async () => {
  let nowMs = 0.9
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  onTestFinished(() => void clock.mockRestore())

  const store = new MemoryStore({ now: () => Math.floor(nowMs) })
  const list = store.list.bind(store)
  let walks = 0
  vi.spyOn(store, 'list').mockImplementation(() => {
    walks += 1
    // When 199.4 of 200 ms have passed, and 200 of the store's own.
    if (walks === 1) nowMs = 200.3
    // In the next try, of 400 ms: within them, and then behind their end.
    if (walks === 2) nowMs = 500
    if (walks === 3) nowMs = 1_000
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
