import { createClient, type KeyStorage, memoryKeys } from 'once-per-key/client'
import { expect, onTestFinished, test, vi } from 'vitest'

// A call whose storage did not answer ended when its time was over, but held its operation's lock for as long as the page lived: no later
// call got a key.

/** Locks that the tests can count, as a browser has them. */
function stubLocks() {
  let held: Promise<unknown> = Promise.resolve()
  const request = (_name: string, work: () => Promise<unknown>) => {
    const turn = held.then(work)
    held = turn.catch(() => {})
    return turn
  }
  vi.stubGlobal('navigator', { locks: { request } })
  onTestFinished(() => void vi.unstubAllGlobals())
}

const fetch = async () => new Response('{}', { status: 201 })

test('a call that ends while its storage is silent lets go of its lock, and stores no key', async () => {
  stubLocks()
  const kept = memoryKeys()
  const setItem = vi.fn(kept.setItem)
  let answer = () => {}
  const silent = new Promise<null>((resolve) => {
    answer = () => resolve(null)
  })
  const storage: KeyStorage = { ...kept, getItem: vi.fn(kept.getItem).mockReturnValueOnce(silent), setItem }
  const send = (totalTimeoutMs: number) =>
    createClient({ keys: storage, fetch, totalTimeoutMs }).send('pay', 'http://127.0.0.1/payouts')
  expect(await send(1)).toMatchObject({ outcome: 'unknown', cause: { name: 'TimeoutError' } })
  expect(await send(2_000)).toMatchObject({ outcome: 'done' })
  answer()
  await new Promise((resolve) => setImmediate(resolve))
  expect(setItem).toHaveBeenCalledTimes(1)
})

test('a call that ended while it waited for its lock takes no turn', async () => {
  stubLocks()
  const kept = memoryKeys()
  const silent = new Promise<null>(() => {})
  const storage: KeyStorage = {
    ...kept,
    getItem: vi.fn(kept.getItem).mockReturnValueOnce(silent).mockReturnValueOnce(silent),
  }
  const send = (totalTimeoutMs: number) =>
    createClient({ keys: storage, fetch, totalTimeoutMs }).send('pay', 'http://127.0.0.1/payouts')
  const ended = [send(20), send(1)]
  expect(await Promise.all(ended)).toMatchObject([{ outcome: 'unknown' }, { outcome: 'unknown' }])
  expect(await send(2_000)).toMatchObject({ outcome: 'done' })
})
