import { createClient, type KeyStorage, memoryKeys } from 'once-per-key/client'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../support/gate.js'
import { inTime, silence, start } from './trial.js'

// The limits of a call did not cover its storage: one that hung kept the call for ever, and a try was sent after the limit. Of two
// callers of one operation, the second's signal did nothing, and the first's ended both calls.

const ADDRESS = 'http://127.0.0.1/payouts'

describe('a storage that does not answer', () => {
  const hangs: KeyStorage = { getItem: () => new Promise(() => {}), setItem() {}, removeItem() {} }

  test('ends the call when its time is over', async () => {
    const { send, seen } = start([], { keys: hangs, totalTimeoutMs: 700 })
    expect(await send()).toMatchObject({ outcome: 'unknown', cause: { name: 'TimeoutError' } })
    expect(seen).toEqual([])
  })

  test('ends the call when its caller aborts', async () => {
    const controller = new AbortController()
    const { send } = createClient({ keys: hangs })
    const call = send('pay', ADDRESS, { signal: controller.signal })
    controller.abort('the user left')
    expect(await call).toMatchObject({ outcome: 'unknown', cause: 'the user left' })
  })

  test('until the call has ended stores no key, and sends no try', async () => {
    const slow = gate()
    const setItem = vi.fn()
    const fetch = vi.fn()
    const { send } = createClient({
      keys: { getItem: () => slow.opened.then(() => null), setItem, removeItem() {} },
      fetch,
      totalTimeoutMs: 1,
    })
    expect(await send('pay', ADDRESS)).toMatchObject({ outcome: 'unknown' })
    slow.open()
    await new Promise((resolve) => setImmediate(resolve))
    expect(setItem).not.toHaveBeenCalled()
    expect(fetch).not.toHaveBeenCalled()
  })
})

describe('of two callers of one operation', () => {
  test('each ends its own call, and the last one ends the try', async () => {
    const { client, seen } = start([silence])
    const { send } = client()
    const callers = [new AbortController(), new AbortController()]
    const calls = callers.map(({ signal }) => send('pay', ADDRESS, { signal }))
    await vi.waitFor(() => expect(seen).toHaveLength(1), { interval: 1 })
    const signal = seen[0]?.init.signal
    callers[0]?.abort('first')
    expect(await calls[0]).toMatchObject({ outcome: 'unknown', cause: 'first' })
    expect(signal?.aborted).toBe(false)
    callers[1]?.abort('second')
    expect(await calls[1]).toMatchObject({ outcome: 'unknown', cause: 'second' })
    expect(signal?.aborted).toBe(true)
  })

  test('the second is done though the first has left', async () => {
    const answered = gate()
    const { client, seen } = start([() => answered.opened.then(() => new Response('paid'))])
    const { send } = client()
    const controller = new AbortController()
    const first = send('pay', ADDRESS, { signal: controller.signal })
    const second = send('pay', ADDRESS)
    await vi.waitFor(() => expect(seen).toHaveLength(1), { interval: 1 })
    controller.abort()
    expect(await first).toMatchObject({ outcome: 'unknown' })
    answered.open()
    expect(await inTime(second)).toMatchObject({ outcome: 'done' })
    expect(seen).toHaveLength(1)
  })

  test('a caller who comes after all have left starts a try of its own', async () => {
    const controller = new AbortController()
    const { client, seen } = start([silence, () => new Response('paid')])
    const { send } = client()
    const first = send('pay', ADDRESS, { signal: controller.signal })
    await vi.waitFor(() => expect(seen).toHaveLength(1), { interval: 1 })
    controller.abort()
    expect(await first).toMatchObject({ outcome: 'unknown' })
    expect(await inTime(send('pay', ADDRESS))).toMatchObject({ outcome: 'done' })
    expect(seen[1]?.key).toBe(seen[0]?.key)
  })

  test('one with other headers is misuse', async () => {
    const answered = gate()
    const { send } = createClient({ keys: memoryKeys(), fetch: () => answered.opened.then(() => new Response('paid')) })
    const first = send('pay', ADDRESS, { headers: { 'X-Merchant': 'acme' } })
    await expect(send('pay', ADDRESS, { headers: { 'X-Merchant': 'globex' } })).rejects.toThrow(/in progress/)
    const same = send('pay', ADDRESS, { headers: { 'x-merchant': 'acme' } })
    answered.open()
    expect((await Promise.all([first, same])).map(({ outcome }) => outcome)).toEqual(['done', 'done'])
  })
})
