import {
  type Answer,
  type CasStoreOptions,
  casStore,
  createOperationEngine,
  type EngineEvent,
  type machine,
  type Store,
} from 'once-per-key/core'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { late, mapOptions, type Rows } from '../support/cas-maps.js'
import { fakeClock } from '../support/fake-clock.js'
import { claimOf, NAMES, NOW, ownOf, RECORDS } from '../support/machine-records.js'
import { mistakesOf } from '../support/mistakes-of.js'

type StoredRecord = machine.StoredRecord

afterEach(() => {
  vi.restoreAllMocks()
})

const now = () => NOW
const KEY = 'acme:order-1'
const ANSWER: Answer = { status: 201, statusMessage: '', headers: [], body: Uint8Array.of(1, 2, 3) }

/** A store whose only row holds this record. */
function storeWith(record: StoredRecord | null, changes: Partial<CasStoreOptions<StoredRecord>> = {}) {
  const rows: Rows = new Map(record === null ? [] : [[KEY, record]])
  return { rows, store: casStore({ ...mapOptions(rows), now, ...changes }) }
}

describe('a synchronous database', () => {
  test('gets a store that replies synchronously', () => {
    const { store } = storeWith(null)
    expect(store.begin(KEY, claimOf())).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
    expect(store.complete(KEY, { ...ownOf({ token: 'other' }), answer: ANSWER })).toEqual({ ok: true })
  })

  test('is read once, and written only by a command that changes the record', () => {
    const read = vi.fn(mapOptions(new Map([[KEY, RECORDS.completed]])).read)
    const swap = vi.fn()
    const store = casStore({ read, swap, now })
    store.begin(KEY, claimOf())
    expect(store.inspect?.(KEY)).toMatchObject({ state: 'completed' })
    expect(read).toHaveBeenCalledTimes(2)
    expect(swap).not.toHaveBeenCalled()
  })
})

test('swap gets the version that was read, the new record, and when it expires', () => {
  const swap = vi.fn(() => true)
  const store = casStore({ read: () => ({ record: null, version: 'row 7', now: 50 }), swap })
  store.begin(KEY, claimOf({ retentionMs: 1_000, leaseMs: 100 }))
  const record = expect.objectContaining({ state: 'in-flight', leaseUntil: 150, expiresAt: 1_050 })
  expect(swap).toHaveBeenCalledExactlyOnceWith(KEY, 'row 7', record, { expiresAt: 1_050 })
})

test('a clock that has fractions of a millisecond is counted in whole ones, which a column of integers keeps', () => {
  const swap = vi.fn(() => true)
  const store = casStore({ read: () => null, swap, now: () => 50.7 })
  expect(store.begin(KEY, claimOf({ retentionMs: 1_000 }))).toMatchObject({ acquired: true })
  expect(swap).toHaveBeenCalledExactlyOnceWith(KEY, null, expect.anything(), { expiresAt: 1_050 })
})

test('a row that has expired counts as absent, is replaced under its version, and is not changed by a look', () => {
  const expired = { ...RECORDS.completed, expiresAt: NOW }
  const { store, rows } = storeWith(expired)
  expect(store.inspect?.(KEY)).toBeNull()
  expect(rows.get(KEY)).toBe(expired)
  expect(store.begin(KEY, claimOf())).toMatchObject({ acquired: true, attempt: 1, previousOutcome: 'none' })
  expect(rows.get(KEY)).toMatchObject({ state: 'in-flight', token: 'other' })
})

test('a promise of a class of its own is waited for', async () => {
  class Query<Value> {
    constructor(readonly value: Value) {}
    // biome-ignore lint/suspicious/noThenProperty: as query builders have it
    then(resolve: (value: Value) => void) {
      setImmediate(resolve, this.value)
    }
  }
  const { read, swap } = mapOptions()
  const asQuery = <Value>(value: Value) => new Query(value) as unknown as Promise<Awaited<Value>>
  const store = casStore({
    read: (key) => asQuery(read(key)),
    swap: (...given) => asQuery(swap(...given)),
  })
  expect(await store.begin(KEY, claimOf())).toMatchObject({ acquired: true, attempt: 1 })
  expect(await store.begin(KEY, claimOf())).toMatchObject({ acquired: true, attempt: 1 })
})

describe('an operator removes a record', () => {
  const forgetting = { state: 'completed', attempt: 3, fingerprint: 'f', removes: true } as const

  test('by remove', () => {
    const { store, rows } = storeWith(RECORDS.completed)
    expect(store.forget?.(KEY, forgetting)).toEqual({ ok: true })
    expect(rows.size).toBe(0)
  })

  test('or, without it, by a record that has expired and holds nothing of the answer', () => {
    const { store, rows } = storeWith(RECORDS.completed, { remove: undefined })
    expect(store.forget?.(KEY, forgetting)).toEqual({ ok: true })
    expect(rows.get(KEY)).toEqual({
      ...{ state: 'failed', token: 'owner', fingerprint: null, attempt: 3, uncertain: false, expiresAt: NOW },
    })
    expect(store.begin(KEY, claimOf())).toMatchObject({ acquired: true, attempt: 1, previousOutcome: 'none' })
  })
})

describe('a swap that is always lost', () => {
  test('is tried a bounded number of times, and is then a clear error that changed nothing', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const swap = vi.fn(() => false)
    const { store, rows } = storeWith(null, { swap })
    await expect(store.begin(KEY, claimOf())).rejects.toMatchObject({
      name: 'CasStoreError',
      code: 'contended',
      message: expect.stringMatching(
        /`swap` or `remove` returned false 20 times in a row.*`read` must see the last write/,
      ),
    })
    expect(swap).toHaveBeenCalledTimes(20)
    expect(rows.size).toBe(0)
  })

  test('is tried again after growing random pauses, all of them within the time limit of a command', async () => {
    vi.useFakeTimers()
    vi.spyOn(Math, 'random').mockReturnValue(0.999)
    const times: number[] = []
    const swap = () => {
      times.push(Date.now())
      return false
    }
    const lost = expect(storeWith(null, { swap }).store.begin(KEY, claimOf())).rejects.toThrow()
    await vi.runAllTimersAsync()
    await lost
    vi.useRealTimers()
    const pauses = times.slice(1).map((time, i) => time - (times[i] as number))
    expect(pauses.slice(0, 7)).toEqual([1, 3, 7, 15, 31, 63, 127])
    expect((times.at(-1) as number) - (times[0] as number)).toBeLessThan(2_000)
  })

  test('is a store failure to the engine: nothing runs, and an event has the code', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const events: EngineEvent[] = []
    const options = mapOptions()
    let isLosing = true
    const store = casStore({ ...options, swap: (...given) => !isLosing && options.swap(...given) })
    const engine = createOperationEngine({ store, onEvent: (event) => events.push(event) })
    const claimed = await engine.claim({ scope: 'acme', key: 'order-1', fingerprint: 'f' })
    expect(claimed).toMatchObject({ action: 'refuse', code: 'store_unavailable' })
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'store_failed', error: expect.objectContaining({ code: 'contended' }) }),
    )
    isLosing = false
    await engine.idle()
  })
})

test('fifty steps of one run, sent at once, are all recorded', async () => {
  const rows: Rows = new Map()
  const store = casStore({ ...late(mapOptions(rows)), now })
  await store.begin(KEY, claimOf())
  const own = { ...ownOf({ token: 'other', attempt: 1 }), state: 'begun', result: null, leaseMs: 30_000 } as const
  const labels = Array.from({ length: 50 }, (_, i) => `step ${i}`)
  const replies = await Promise.all(labels.map((label, i) => store.step?.(KEY, { ...own, label, order: i + 1 })))
  expect(new Set(replies.map((reply) => reply?.ok))).toEqual(new Set([true]))
  expect(rows.get(KEY)).toMatchObject({ steps: expect.objectContaining({ length: 50 }) })
})

describe('a swap that was applied, and whose reply was lost', () => {
  const own = ownOf({ attempt: 1 })
  const live = { ...RECORDS['in-flight, lease live'], attempt: 1 } as const
  const lapsed = { ...live, leaseUntil: NOW } as const
  const step = { label: 'charge', order: 2, state: 'done', result: Uint8Array.of(7), leaseMs: 30_000 } as const
  const resolution = { token: 'operator', attempt: 1, answer: ANSWER, retentionMs: 1_000 } as const
  const forgetting = { state: 'completed', attempt: 3, fingerprint: 'f', removes: false } as const

  const SENT: readonly (readonly [name: string, before: StoredRecord | null, send: (store: Store) => unknown])[] = [
    ['begin', null, (store) => store.begin(KEY, claimOf())],
    ['begin, as a takeover', lapsed, (store) => store.begin(KEY, claimOf())],
    ['renew', live, (store) => store.renew(KEY, { ...own, leaseMs: 30_000 })],
    ['complete', live, (store) => store.complete(KEY, { ...own, answer: ANSWER })],
    ['release, certain', live, (store) => store.release(KEY, { ...own, failedMs: 1_000 })],
    ['release, uncertain', live, (store) => store.release(KEY, { ...own, uncertain: true, failedMs: 1_000 })],
    ['step', live, (store) => store.step?.(KEY, { ...own, ...step })],
    ['resolve', lapsed, (store) => store.resolve?.(KEY, resolution)],
    ['forget', RECORDS.completed, (store) => store.forget?.(KEY, forgetting)],
  ]

  /** What the command replies and leaves when nothing is lost. */
  const due = (before: StoredRecord | null, send: (store: Store) => unknown) => {
    const { store, rows } = storeWith(before)
    return { reply: send(store), record: rows.get(KEY) }
  }

  test.each(SENT)(
    '%s: the error is passed on, and the command that is sent again replies as the first',
    (_, before, send) => {
      const rows: Rows = new Map(before === null ? [] : [[KEY, before]])
      const { swap, ...others } = mapOptions(rows)
      const lost = new Error('The connection was lost.')
      let losses = 0
      const losing: typeof swap = (...given) => {
        const hasWon = swap(...given)
        if (losses++ === 0) throw lost
        return hasWon
      }
      const store = casStore({ ...others, swap: losing, now })
      expect(() => send(store)).toThrow(lost)
      expect({ reply: send(store), record: rows.get(KEY) }).toEqual(due(before, send))
    },
  )

  test.each(SENT)(
    '%s: a client that sent it twice by itself, and so lost to itself, gets the first reply',
    async (_, before, send) => {
      const rows: Rows = new Map(before === null ? [] : [[KEY, before]])
      const { swap, ...others } = mapOptions(rows)
      let swaps = 0
      const twice: typeof swap = (...given) => {
        if (swaps++ === 0) swap(...given)
        return swap(...given)
      }
      const store = casStore({ ...others, swap: twice, now })
      expect({ reply: await send(store), record: rows.get(KEY) }).toEqual(due(before, send))
    },
  )
})

describe('without a clock of the database, a process whose clock is ahead', () => {
  const LEASE_MS = 30_000

  /** An owner renews every third of its lease until another process claims, whose clock is ahead. */
  async function claimAhead(aheadMs: number) {
    const { now, advance } = fakeClock()
    const options = mapOptions()
    const owner = casStore({ ...options, now })
    const ahead = casStore({ ...options, now: () => now() + aheadMs })
    const own = { ...ownOf({ attempt: 1 }), leaseMs: LEASE_MS }
    await owner.begin(KEY, claimOf({ token: own.token }))
    advance(LEASE_MS / 3)
    await owner.renew(KEY, own)
    advance(LEASE_MS / 3 - 1)
    return { claimed: ahead.begin(KEY, claimOf()), renewed: owner.renew(KEY, own) }
  }

  test('by half a lease takes no lease of an owner that renews it', async () => {
    const { claimed, renewed } = await claimAhead(LEASE_MS / 2)
    expect(claimed).toMatchObject({ acquired: false, record: { state: 'in-flight' } })
    expect(renewed).toEqual({ ok: true })
  })

  test('by a whole lease takes it, is told so, and the owner finds out at its next command', async () => {
    const { claimed, renewed } = await claimAhead(LEASE_MS)
    expect(claimed).toMatchObject({ acquired: true, attempt: 2, previousOutcome: 'unknown' })
    expect(renewed).toMatchObject({ ok: false })
  })
})

describe('options', () => {
  const mistakes = (given: unknown) => mistakesOf(() => casStore(given as CasStoreOptions<string>))

  test('that are wrong are listed in one error', () => {
    expect(mistakes({ read: 1, remove: 'no', list: {}, now: 7, prefix: 'x' })).toEqual([
      'prefix: there is no such option',
      'read: expected a function; seen: 1',
      'swap: expected a function; seen: undefined',
      'remove: expected a function; seen: "no"',
      'list: expected a function; seen: an object (Object)',
      'now: expected a function; seen: 7',
    ])
  })

  test('must be there', () => {
    expect(mistakes(undefined)).toEqual(['expected options, such as { read: … }; seen: undefined'])
  })

  test('without list give a store without the commands that need it', () => {
    const { read, swap } = mapOptions()
    expect(Object.keys(casStore({ read, swap })).sort()).toEqual(
      'begin complete inspect release renew resolve step'.split(' '),
    )
    expect(Object.keys(casStore(mapOptions())).sort()).toEqual(
      'begin complete forget inspect list listScope release renew resolve step'.split(' '),
    )
  })

  test('that need a transaction are refused where the store is used', () => {
    const { store } = storeWith(null)
    expect(mistakesOf(() => createOperationEngine({ store, effects: 'in-transaction' }))).toHaveLength(1)
  })

  test('without now count by the time of the process', () => {
    const { read, swap } = mapOptions()
    const rows: StoredRecord[] = []
    const store = casStore({ read, swap: (...given) => rows.push(given[2]) > 0 && swap(...given) })
    store.begin(KEY, claimOf({ retentionMs: 60_000 }))
    expect(Math.abs((rows[0]?.expiresAt ?? 0) - Date.now() - 60_000)).toBeLessThan(5_000)
  })
})

describe('a result of another type is an error at the first command', () => {
  const CHANGES: readonly (readonly [message: string, changes: object])[] = [
    ['`read` .* expected { record, version }, or null if there is no row; seen: undefined', { read: () => undefined }],
    ['`read` .* seen: a string', { read: () => 'in-flight' }],
    ['`read` .* seen: an object', { read: () => ({}) }],
    ['`read` .* seen: an object', { read: () => ({ record: RECORDS.completed }) }],
    ['`read` .* seen: an object', { read: () => ({ record: RECORDS.completed, version: null }) }],
    ['`read` .* seen: an object', { read: () => ({ row: RECORDS.completed, version: 1 }) }],
    ['`read` .* seen: an array', { read: () => [{ record: RECORDS.completed, version: 1 }] }],
    [
      '`read` .* a time in milliseconds, .* seen: a string',
      { read: () => ({ record: null, version: null, now: '1' }) },
    ],
    ['`now` .* a time in milliseconds, .* seen: an object \\(Date\\)', { now: () => new Date() }],
    ['`swap` .* expected true or false; seen: undefined', { swap: () => {} }],
    ['`swap` .* seen: a number', { swap: () => 1 }],
  ]

  test.each(CHANGES)('%s', (message, changes) => {
    const { store } = storeWith(null, changes)
    expect(() => store.begin(KEY, claimOf())).toThrow(new RegExp(message))
    expect(() => store.begin(KEY, claimOf())).toThrow(expect.objectContaining({ code: 'result_invalid' }))
  })

  test('of remove', () => {
    const { store } = storeWith(RECORDS.completed, { remove: () => 1 as never })
    const forgetting = { state: 'completed', attempt: 3, fingerprint: 'f', removes: true } as const
    expect(() => store.forget?.(KEY, forgetting)).toThrow(/`remove` .* expected true or false; seen: a number/)
  })

  test.each([[undefined], [{ records: [] }], [{ records: [{}], next: null }], [{ records: {}, next: null }]])(
    'of list: %j',
    (page) => {
      const { store } = storeWith(null, { list: () => page as never })
      expect(() => store.list?.(null)).toThrow(
        /`list` .* expected { records: \[{ key, record }, …\], next: a string or null }/,
      )
    },
  )
})

describe('a record that cannot be read', () => {
  const damaged = { ...RECORDS['in-flight, lease live'], leaseUntil: 'tomorrow' } as unknown as StoredRecord

  test('is a store failure, never an absent record, and is left unchanged', () => {
    const { store, rows } = storeWith(damaged)
    const error = expect.objectContaining({
      name: 'CasStoreError',
      code: 'record_unreadable',
      message: 'The record cannot be read, and was left unchanged: its leaseUntil is damaged.',
    })
    expect(() => store.begin(KEY, claimOf())).toThrow(error)
    expect(() => store.complete(KEY, { ...ownOf(), answer: ANSWER })).toThrow(error)
    expect(rows.get(KEY)).toBe(damaged)
  })

  test('is named apart in a walk, which shows the others', () => {
    const { store, rows } = storeWith(damaged)
    rows.set('acme:order-2', RECORDS['failed, uncertain'])
    expect(store.list?.(null)).toMatchObject({ records: [{ key: 'acme:order-2' }], unreadable: [KEY] })
    expect(store.listScope?.('acme', null)).toMatchObject({ records: [{ key: 'acme:order-2' }], unreadable: [KEY] })
  })
})

test.each(NAMES)('%s: a record is accepted as it is', (name) => {
  const { store } = storeWith(RECORDS[name])
  expect(store.inspect?.(KEY)).toMatchObject({ state: RECORDS[name].state })
})

test('what is thrown by the functions is passed on unchanged', async () => {
  const down = new Error('The database is down.')
  const failing = () => {
    throw down
  }
  expect(() => storeWith(null, { read: failing }).store.begin(KEY, claimOf())).toThrow(down)
  expect(() => storeWith(null, { swap: failing }).store.begin(KEY, claimOf())).toThrow(down)
  const rejecting = storeWith(null, { swap: () => Promise.reject(down) }).store
  await expect(rejecting.begin(KEY, claimOf())).rejects.toBe(down)
})
