import { createClient, type KeyStorage, memoryKeys } from 'once-per-key/client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../support/gate.js'
import * as trial from './trial.js'
import { BODY, declined, done, hangUp, inTime, loggedOut, OPERATION, replayed, start, URL_OF_PAYOUTS } from './trial.js'

describe('a key', () => {
  test('is kept before it is sent', async () => {
    const kept: unknown[] = []
    const { send, keys, seen } = start([
      (sent) => {
        kept.push(...keys.all)
        return done(sent)
      },
    ])
    await send()
    expect(kept).toEqual([[`once-per-key:${OPERATION}`, seen[0]?.key]])
  })

  test.each([undefined, '', 1001, {}])(
    'of an operation without a name (%j) is never sent: all would share it',
    async (name) => {
      const { client, seen } = start([done])
      await expect(inTime(client().send(name as string, URL_OF_PAYOUTS))).rejects.toThrow('The operation needs a name.')
      expect(seen).toEqual([])
    },
  )

  test('is another for another operation', async () => {
    const { send, seen } = start([done, done])
    await send({}, 'pay order-1001')
    await send({}, 'pay order-1002')
    expect(seen[0]?.key).not.toBe(seen[1]?.key)
  })

  test('begins with the time and is random, on a page over plain HTTP too, where there is no randomUUID', async () => {
    vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) })
    onTestFinished(() => void vi.unstubAllGlobals())
    const { send, seen } = start([done, done])
    await send({}, 'pay order-1001')
    await send({}, 'pay order-1002')
    for (const { key } of seen) expect(key).toMatch(new RegExp(`^${Date.now()}(-\\d+){4}$`))
    expect(seen[0]?.key).not.toBe(seen[1]?.key)
  })
})

describe('kept in memory, a key', () => {
  test('lives as long as the memory', async () => {
    const keys = memoryKeys()
    const { send, seen } = start([hangUp, replayed], { keys, maxTries: 1 })
    await send()
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect(seen[1]?.key).toBe(seen[0]?.key)
  })

  test('is forgotten with the operation', async () => {
    const { send, seen, client } = start([done, done], { keys: memoryKeys() })
    const { forget } = client()
    await send()
    await forget(OPERATION)
    await send()
    expect(seen[1]?.key).not.toBe(seen[0]?.key)
  })
})

describe('kept by functions that return promises, a key', () => {
  test('is waited for, and so is its end', async () => {
    const inner = trial.keyStorage()
    const keys = {
      getItem: async (name: string) => inner.getItem(name),
      setItem: async (name: string, key: string) => inner.setItem(name, key),
      removeItem: async (name: string) => inner.removeItem(name),
    }
    const { client, seen } = start([hangUp, declined, done], { keys, maxTries: 1 })
    const { send } = client()
    const post = () => inTime(send(OPERATION, URL_OF_PAYOUTS, { body: BODY }))
    await post()
    expect([...inner.all.values()]).toEqual([seen[0]?.key])
    expect(await post()).toMatchObject({ outcome: 'refused' })
    expect(inner.all.size).toBe(0)
    expect(seen[1]?.key).toBe(seen[0]?.key)
  })

  test('that cannot be kept is never sent: the call rejects with the error of the storage', async () => {
    const full = new Error('QuotaExceededError')
    const keys = { getItem: async () => null, setItem: () => Promise.reject(full), removeItem() {} }
    const { send, seen } = start([done], { keys })
    await expect(send()).rejects.toBe(full)
    expect(seen).toEqual([])
  })

  test('that was not kept, without a word from the storage, is never sent: after a reload it would be another', async () => {
    const { send, seen } = start([done], { keys: { getItem: () => null, setItem() {}, removeItem() {} } })
    await expect(send()).rejects.toThrow('A key is missing.')
    expect(seen).toEqual([])
  })
})

describe('in a sandboxed frame, whose storage and locks are denied,', () => {
  const denied = () => {
    throw new DOMException('Access is denied for this document.', 'SecurityError')
  }

  test('a key that is kept in memory is used', async () => {
    vi.stubGlobal('navigator', { locks: { request: async () => denied() } })
    onTestFinished(() => void vi.unstubAllGlobals())
    const { send, seen } = start([hangUp, done], { keys: memoryKeys() })
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect(seen.map(({ key }) => key)).toEqual([seen[0]?.key, seen[0]?.key])
  })

  test('a key is not sent without being kept: the call rejects with the error of the storage', async () => {
    const keys = {
      get getItem() {
        return denied()
      },
      setItem: denied,
      removeItem: denied,
    }
    const { send, seen } = start([done], { keys })
    await expect(send()).rejects.toMatchObject({ name: 'SecurityError' })
    expect(seen).toEqual([])
  })
})

describe('made by a function, a key', () => {
  test('is that of the operation, whichever client sends it', async () => {
    const { send, seen } = start([hangUp, done], { keys: async (operation: string) => `shop ${operation}` })
    await send()
    expect(seen.map(({ key }) => key)).toEqual([`shop ${OPERATION}`, `shop ${OPERATION}`])
  })

  test('may have been sent before: only a refusal that speaks for that try too settles it', async () => {
    const { send } = start([loggedOut, declined], { keys: (operation) => operation })
    expect(await send()).toMatchObject({ outcome: 'unknown' })
    expect(await send()).toMatchObject({ outcome: 'refused' })
  })

  test.each([undefined, null, ''])('is misuse where it is %j, and nothing is sent', async (key) => {
    const { send, seen } = start([done], { keys: () => key as string })
    await expect(send()).rejects.toThrow(TypeError)
    expect(seen).toEqual([])
  })

  test('is misuse where no header can carry it, and nothing is sent', async () => {
    const { send, seen } = start([done], { keys: () => 'Bestellung №7' })
    await expect(send()).rejects.toThrow(TypeError)
    expect(seen).toEqual([])
  })
})

describe('two calls at once for one operation, such as a double click,', () => {
  test('are one: each gets its outcome, with a body of its own to read', async () => {
    const { client, seen } = start([done])
    const { send } = client()
    const click = () => send(OPERATION, URL_OF_PAYOUTS, { body: BODY })
    const ends = await Promise.all([click(), click()].map(inTime))
    expect(ends.map(({ outcome }) => outcome)).toEqual(['done', 'done'])
    expect(await Promise.all(ends.map(({ response }) => response?.json()))).toEqual([{ id: 'po_1' }, { id: 'po_1' }])
    expect(seen).toHaveLength(1)
  })

  test('are one with a form, too, which each would send with a boundary of its own', async () => {
    const { client, seen } = start([done])
    const { send } = client()
    const form = new FormData()
    form.append('amount', '100')
    const click = () => send(OPERATION, URL_OF_PAYOUTS, { body: form, headers: { Accept: 'application/json' } })
    const ends = await Promise.all([click(), click()].map(inTime))
    expect(ends.map(({ outcome }) => outcome)).toEqual(['done', 'done'])
    expect(seen).toHaveLength(1)
  })

  test('are one although the key of the first is forgotten before the second has heard of its end', async () => {
    const { client, seen } = start([done])
    const { send, forget } = client()
    const first = send(OPERATION, URL_OF_PAYOUTS, { body: BODY }).then(() => forget(OPERATION))
    const second = send(OPERATION, URL_OF_PAYOUTS, { body: BODY })
    await first
    expect(await inTime(second)).toMatchObject({ outcome: 'done' })
    expect(seen).toHaveLength(1)
  })

  test.each([
    { what: 'another body', url: URL_OF_PAYOUTS, init: { body: '{"amount":200}' } },
    { what: 'another address', url: 'http://127.0.0.1/refunds', init: { body: BODY } },
    { what: 'another method', url: URL_OF_PAYOUTS, init: { body: BODY, method: 'PUT' } },
  ])('are misuse with $what, and the second is not sent', async ({ url, init }) => {
    const { client, seen } = start([done, done])
    const { send } = client()
    const first = send(OPERATION, URL_OF_PAYOUTS, { body: BODY })
    await expect(send(OPERATION, url, init)).rejects.toThrow(/in progress/)
    expect(await inTime(first)).toMatchObject({ outcome: 'done' })
    expect(seen).toHaveLength(1)
  })

  test('one after the other are two calls', async () => {
    const { client, seen } = start([hangUp, hangUp], { maxTries: 1 })
    const { send } = client()
    for (let click = 0; click < 2; click++) await inTime(send(OPERATION, URL_OF_PAYOUTS, { body: BODY }))
    expect(seen).toHaveLength(2)
  })

  test('share the key where a storage is slow', async () => {
    const slow = gate()
    const inner = trial.keyStorage()
    const getItem = (name: string) => slow.opened.then(() => inner.getItem(name))
    const keys = { ...inner, getItem, setItem: vi.fn(inner.setItem) }
    const { client, seen } = start([done], { keys })
    const { send } = client()
    const ends = [1, 2].map(() => send(OPERATION, URL_OF_PAYOUTS, { body: BODY }))
    slow.open()
    await Promise.all(ends.map(inTime))
    expect(keys.setItem).toHaveBeenCalledTimes(1)
    expect(seen).toHaveLength(1)
  })
})

describe('options that cannot be meant are misuse:', () => {
  test('no place for keys', () => {
    expect(() => createClient({} as never)).toThrow(TypeError)
    expect(() => createClient(undefined as never)).toThrow('`keys` is missing.')
  })

  test('a place for keys that is none', () => {
    expect(() => createClient({ keys: 'order-1001' as never })).toThrow(TypeError)
  })

  test('a name that is unknown, with those that are known', () => {
    const misspelt = { keys: memoryKeys(), maxTrys: 3 }
    expect(() => createClient(misspelt)).toThrow(/^No option maxTrys, but .*maxTries/)
    expect(() => createClient({ ...misspelt, maxTrys: undefined } as never)).toThrow(TypeError)
  })

  test.each([{ fetch: 'node-fetch' }, { settles: true }, { maxTries: '3' }, { totalTimeoutMs: null }])(
    'a value of another type (%j)',
    (option) => {
      const options = { keys: memoryKeys(), ...option } as never
      expect(() => createClient(options)).toThrow(new RegExp(`^${Object.keys(option)}: use a (function|number)$`))
    },
  )

  test.each([
    { tryTimeoutMs: 0 },
    { tryTimeoutMs: 2 ** 31 },
    { totalTimeoutMs: Number.POSITIVE_INFINITY },
    { totalTimeoutMs: -1 },
    { maxTries: Number.NaN },
    { expiresAfterMs: 0 },
    { expiresAfterMs: Number.NaN },
    { maxTries: 0 },
  ])('%j', (limit) => {
    expect(() => createClient({ keys: memoryKeys(), ...limit })).toThrow(RangeError)
  })
})

describe('two clients over one storage', () => {
  /** Both read before either writes, and both write before either reads again. */
  function inStep(inner: KeyStorage): KeyStorage {
    const both = [gate(), gate()]
    let calls = 0
    const inTurn = async () => {
      const turn = both[Math.floor(calls / 2)]
      if (++calls % 2 === 0) turn?.open()
      await turn?.opened
    }
    return {
      async getItem(name) {
        const kept = inner.getItem(name)
        await inTurn()
        return kept
      },
      async setItem(name, key) {
        inner.setItem(name, key)
        await inTurn()
      },
      removeItem: (name) => inner.removeItem(name),
    }
  }

  async function keysSent(storage: KeyStorage): Promise<(string | null)[]> {
    const sent: (string | null)[] = []
    const fetch: typeof globalThis.fetch = async (_url, init) => {
      sent.push(new Headers(init?.headers).get('Idempotency-Key'))
      return new Response('{}', { status: 201 })
    }
    const send = () => createClient({ keys: storage, fetch }).send(OPERATION, URL_OF_PAYOUTS, { body: BODY })
    await Promise.all([send(), send()])
    return sent
  }

  test('send one key, though both found none and stored their own', async () => {
    vi.stubGlobal('navigator', undefined)
    onTestFinished(() => void vi.unstubAllGlobals())
    const storage = trial.keyStorage()
    const [one, other] = await keysSent(inStep(storage))
    expect(other).toBe(one)
    expect(storage.getItem(`once-per-key:${OPERATION}`)).toBe(one)
  })

  test('take turns where the platform has locks', async () => {
    let last: Promise<unknown> = Promise.resolve()
    const names: string[] = []
    const request = (name: string, work: () => Promise<unknown>) => {
      names.push(name)
      const turn = last.then(work)
      last = turn
      return turn
    }
    vi.stubGlobal('navigator', { locks: { request } })
    onTestFinished(() => void vi.unstubAllGlobals())
    const storage = trial.keyStorage()
    let written = 0
    const counted: KeyStorage = {
      ...storage,
      getItem: async (name) => storage.getItem(name),
      setItem: async (name, key) => {
        if (name.endsWith(OPERATION)) written++
        storage.setItem(name, key)
      },
    }
    const [one, other] = await keysSent(counted)
    expect(other).toBe(one)
    expect([written, names]).toEqual([1, [`once-per-key:${OPERATION}`, `once-per-key:${OPERATION}`]])
  })
})
