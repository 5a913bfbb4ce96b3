import { randomUUID } from 'node:crypto'
import type { Store } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, describe, expect, test } from 'vitest'
import { BooksUnavailable, type Ledger, memoryLedger } from '../../examples/payments/ledger.js'
import { gate } from '../support/gate.js'
import { expectRefusal, expectSuccess } from './operations-table.js'
import { type Ground, PATHS, type Service, startService } from './payments-service.js'

const LEASE_MS = 30_000
const services: Service[] = []

afterEach(async () => {
  for (const service of services.splice(0)) await service.stop()
})

describe.each(PATHS)('%s', (path) => {
  test('an owner that dies between its effect and its answer: the next attempt answers for it, and runs nothing', async () => {
    const { store, ledger, lapse } = sharedGround()
    const { dying, completing } = dyingStore(store)
    const first = await start({ store: dying, ledger })
    const second = await start({ store, ledger })
    const request = { body: await first.sample(path), key: randomUUID() }
    const seeded = first.writes()
    const lost = first.send(path, request).catch(() => 'no answer')
    const { body } = await completing
    const written = first.writes() - seeded
    await first.stop()
    expect(await lost).toBe('no answer')
    expect(written).toBeGreaterThan(1)

    expectRefusal(await second.send(path, request), 'in_flight')
    lapse()
    const retry = await second.send(path, request)
    expectSuccess(retry)
    expect(retry.bytes.toString()).toBe(Buffer.from(body ?? []).toString())
    expect(second.writes()).toBe(0)
    expect(second.log.map(({ msg, previousOutcome }) => previousOutcome ?? msg)).toEqual([
      'in_flight',
      'unknown',
      'completed',
    ])
    expect((await second.send(path, request)).bytes.equals(retry.bytes)).toBe(true)
  })

  test('an owner that stalls before its effect: it finds what the next attempt has done, and adds nothing', async () => {
    const { store, ledger, lapse } = sharedGround()
    const stalling = await start({ store, ledger })
    const other = await start({ store, ledger })
    const request = { body: await other.sample(path), key: randomUUID() }
    const held = stalling.hold()
    const first = stalling.send(path, request)
    await held.entered
    lapse()
    const takeover = await other.send(path, request)
    expectSuccess(takeover)
    held.open()
    expect((await first).bytes.equals(takeover.bytes)).toBe(true)
    expect((await first).headers.get('idempotent-replayed')).toBe('true')
    expect(stalling.writes()).toBe(0)
  })
})

const PATH = '/api/service/payout/create'
const BODY = { amount: 100, currency: 'EUR' }

test('books whose reply was lost: 503, and the retry answers for the effect that they hold', async () => {
  const { ledger: inner } = sharedGround()
  const { ledger, failNext } = failingLedger(inner)
  const service = await start({ ledger })
  const request = { body: BODY, key: randomUUID() }
  failNext('behind the commit')
  const failed = await service.send(PATH, request)
  expectUnavailable(failed)
  const writes = service.writes()
  expectRefusal(await service.send(PATH, { ...request, body: { ...BODY, amount: 1 } }), 'mismatched')
  expectSuccess(await service.send(PATH, request))
  expect(service.writes()).toBe(writes)
})

test('books that cannot be reached: 503, nothing has happened, and the key is free', async () => {
  const { ledger, failNext } = failingLedger(memoryLedger())
  const service = await start({ ledger })
  const key = randomUUID()
  failNext('before the commit')
  expectUnavailable(await service.send(PATH, { body: BODY, key }))
  expectSuccess(await service.send(PATH, { body: { ...BODY, amount: 1 }, key }))
})

test.each([
  ['an operation without a key', PATH, 'POST'],
  ['the list', '/operations', 'GET'],
] as const)('books that cannot be reached: %s gets a 503 too', async (_name, path, method) => {
  const { ledger, failNext } = failingLedger(memoryLedger())
  const service = await start({ ledger })
  failNext('before the commit')
  expectUnavailable(await service.send(path, { method, ...(method === 'POST' && { body: BODY }) }))
  expect(service.log).toMatchObject([{ level: 40, msg: 'books_unavailable', reason: 'before the commit' }])
})

test('an outcome that is no longer kept answers for nothing', async () => {
  const ledger = memoryLedger()
  const key = randomUUID()
  const first = await (await start({ ledger })).send(PATH, { body: BODY, key })
  const early: Ledger = {
    transaction: (merchantId, work) =>
      ledger.transaction(merchantId, (books) =>
        work({
          ...books,
          async get(kind, id) {
            const entry = await books.get(kind, id)
            return entry && 'keptUntil' in entry ? { ...entry, keptUntil: new Date(0).toISOString() } : entry
          },
        }),
      ),
  }
  const later = await (await start({ ledger: early })).send(PATH, { body: BODY, key })
  expectSuccess(later)
  expect(later.json.id).not.toBe(first.json.id)
})

async function start(ground: Ground): Promise<Service> {
  const service = await startService(ground)
  services.push(service)
  return service
}

/** Two services on it are one. */
function sharedGround() {
  let nowMs = 0
  const store = new MemoryStore({ now: () => nowMs })
  const lapse = () => {
    nowMs += LEASE_MS
  }
  return { store, ledger: memoryLedger(), lapse }
}

/** The store as a process sees it that dies with its first completion: nothing more of it arrives. */
function dyingStore(store: Store) {
  const { opened, open } = gate<{ readonly body: Uint8Array | null }>()
  const lost = () => new Promise<never>(() => {})
  const dying: Store = {
    begin: (key, claim) => store.begin(key, claim),
    renew: lost,
    release: lost,
    complete(_key, { answer }) {
      open(answer)
      return lost()
    },
  }
  return { dying, completing: opened }
}

function failingLedger(inner: Ledger) {
  let fault: 'before the commit' | 'behind the commit' | undefined
  const ledger: Ledger = {
    async transaction(merchantId, work) {
      const now = fault
      fault = undefined
      if (now === 'before the commit') throw new BooksUnavailable(now, false)
      const result = await inner.transaction(merchantId, work)
      if (now === 'behind the commit') throw new BooksUnavailable(now, true)
      return result
    },
  }
  const failNext = (at: typeof fault) => {
    fault = at
  }
  return { ledger, failNext }
}

function expectUnavailable(refusal: Awaited<ReturnType<Service['send']>>): void {
  expectRefusal(refusal, 'books_unavailable', 503)
  expect([refusal.headers.get('retry-after'), refusal.headers.get('x-should-retry')]).toEqual(['1', 'true'])
}
