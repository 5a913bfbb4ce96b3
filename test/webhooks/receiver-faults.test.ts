import { CertainFailure } from 'once-per-key'
import type { Answer, Store, Unclaimed } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { begin, deliver, merchantUpdated, receive } from '../support/deliveries.js'
import { failingStore } from '../support/failing-store.js'
import { answerWith, failBefore, failLate, gated, hang, throwAtOnce } from '../support/faults.js'
import { gate } from '../support/gate.js'
import { problemIn } from './problem-in.js'

const QUICK = { storeTimeoutMs: 20 }
const UNAVAILABLE = { status: 503, code: 'store_unavailable', shouldRetry: 'true', retryAfter: '1' }

describe.each(BINDINGS)('on $name', (binding) => {
  test.each([
    { name: 'hangs', fault: hang },
    { name: 'fails', fault: failBefore() },
    { name: 'throws at once', fault: throwAtOnce },
    { name: 'answers nonsense', fault: answerWith(undefined) },
  ])('a store that $name at the claim is answered 503, and nothing runs', async ({ fault }) => {
    const store = failingStore()
    store.next('begin', fault)
    const { port, handled, receiver } = await receive(binding, { options: { ...QUICK, store } })
    expect(problemIn(await deliver(port))).toEqual(UNAVAILABLE)
    expect(handled).toEqual([])
    await receiver.idle()
    expect((await deliver(port)).status).toBe(200)
    expect(handled).toHaveLength(1)
  })

  test('a completion that the store does not confirm in time is answered 200, and stored later', async () => {
    const store = failingStore()
    store.next('complete', failLate(50))
    const { port, handled, receiver, events } = await receive(binding, { options: { ...QUICK, store } })
    expect((await deliver(port)).status).toBe(200)
    await receiver.idle()
    expect((await deliver(port)).header('idempotent-replayed')).toBe('true')
    expect(handled).toHaveLength(1)
    expect(events.map(({ type }) => type)).toContain('completion_pending')
  })

  test('the record changes before the answer is sent: a success', async () => {
    const { fault, open } = gated()
    const store = failingStore()
    store.next('complete', fault)
    const running = gate()
    const { port } = await receive(binding, { options: { store }, handler: () => running.open() })
    const first = begin(port)
    await running.opened
    expect((await deliver(port)).status).toBe(409)
    expect(first.received()).toHaveLength(0)
    open()
    expect((await first.reply()).status).toBe(200)
  })

  test('the record changes before the answer is sent: a failure', async () => {
    const { fault, open } = gated()
    const store = failingStore()
    store.next('release', fault)
    const { port, seen } = await receive(binding, {
      options: { store },
      handler: () => Promise.reject(new Error('no')),
    })
    const first = begin(port)
    await seen('handler_failed')
    expect((await deliver(port)).status).toBe(409)
    expect(first.received()).toHaveLength(0)
    open()
    expect((await first.reply()).status).toBe(500)
  })

  test.each([
    { name: 'resolves', fails: false, completed: true, status: 200 },
    { name: 'throws', fails: true, completed: true, status: 200 },
    { name: 'resolves', fails: false, completed: false, status: 409 },
    { name: 'throws', fails: true, completed: false, status: 409 },
  ])(
    'a handler that $name after its lease was taken (completed by another: $completed) is answered $status',
    async (one) => {
      const { port } = await receive(binding, {
        options: { store: takenOver(one.completed) },
        handler() {
          if (one.fails) throw new Error('no')
        },
      })
      const reply = await deliver(port)
      expect(reply.status).toBe(one.status)
      if (one.completed) expect(reply.header('idempotent-replayed')).toBe('true')
      else expect(problemIn(reply)).toMatchObject({ code: 'in_flight', retryAfter: '1' })
    },
  )
})

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

test('a handler hears that its lease was lost', async () => {
  const store = failingStore()
  store.always('renew', hang)
  const { port, handled, events } = await receive(express5, {
    options: { store, storeTimeoutMs: 20, leaseMs: 80 },
    handler: (_event, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  })
  expect((await deliver(port)).status).toBe(500)
  expect(handled[0]?.context.signal.reason).toMatchObject({ code: 'lease_lost' })
  expect(events).toContainEqual(expect.objectContaining({ type: 'lease_lost', reason: 'lapsed' }))
})

describe('an outcome that is unknown', () => {
  const failing = (mayHaveEffect: boolean) => {
    let failures = 1
    return (_event: unknown, context: { mayHaveEffect(): void }) => {
      if (mayHaveEffect) context.mayHaveEffect()
      if (failures-- > 0) throw new Error('no')
    }
  }

  test('after mayHaveEffect() is told to the next handler, and binds the id to its content', async () => {
    const { port, handled, events } = await receive(express5, { handler: failing(true) })
    expect((await deliver(port)).status).toBe(500)
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true }))
    const other = { body: merchantUpdated({ payload: { id: 'mer_2' } }) }
    expect(problemIn(await deliver(port, other))).toMatchObject({ status: 409, code: 'mismatched' })
    expect((await deliver(port)).status).toBe(200)
    expect(handled.map(({ context }) => context.previousOutcome)).toEqual(['none', 'unknown'])
  })

  test('is that of any throw: an event with another content is refused, the same runs again', async () => {
    const { port, handled } = await receive(express5, { handler: failing(false) })
    expect((await deliver(port)).status).toBe(500)
    expect((await deliver(port, { body: merchantUpdated({ payload: { id: 'mer_2' } }) })).status).toBe(409)
    expect((await deliver(port)).status).toBe(200)
    expect(handled.map(({ context }) => context.previousOutcome)).toEqual(['none', 'unknown'])
  })

  test('is not that of a CertainFailure: a corrected event may follow', async () => {
    let runs = 0
    const handler = () => {
      if (++runs === 1) throw new CertainFailure('no such merchant')
    }
    const { port, handled } = await receive(express5, { handler })
    expect((await deliver(port)).status).toBe(500)
    expect((await deliver(port, { body: merchantUpdated({ payload: { id: 'mer_2' } }) })).status).toBe(200)
    expect(handled.map(({ context }) => context.previousOutcome)).toEqual(['none', 'failed'])
  })

  test("is refused where `unknownOutcome` says 'refuse'", async () => {
    const { port, handled } = await receive(express5, {
      handler: failing(true),
      options: { unknownOutcome: 'refuse' },
    })
    await deliver(port)
    expect(problemIn(await deliver(port))).toEqual({
      status: 409,
      code: 'outcome_unknown',
      shouldRetry: 'false',
      retryAfter: undefined,
    })
    expect(handled).toHaveLength(1)
  })

  test('after a crash is told to the next handler', async () => {
    let now = 1
    const store = new MemoryStore({ now: () => now })
    const crashed = await receive(express5, { options: { store }, handler: () => new Promise(() => {}) })
    const first = begin(crashed.port)
    await crashed.seen('claimed')
    first.socket.destroy()
    now += 30_001
    const { port, handled } = await receive(express5, { options: { store } })
    expect((await deliver(port)).status).toBe(200)
    expect(handled[0]?.context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
  })
})

test('Retry-After follows `retryAfterMs`', async () => {
  const { port, seen } = await receive(express5, {
    options: { retryAfterMs: 7_000 },
    handler: () => new Promise(() => {}),
  })
  begin(port)
  await seen('claimed')
  expect((await deliver(port)).header('retry-after')).toBe('7')
})

test('idle resolves when the last handler has ended', async () => {
  const { opened, open } = gate()
  const { port, receiver, seen } = await receive(express5, { handler: () => opened })
  const first = begin(port)
  await seen('claimed')
  let idle = false
  const ended = receiver.idle().then(() => {
    idle = true
  })
  await deliver(port)
  expect(idle).toBe(false)
  open()
  await first.reply()
  await ended
  expect(idle).toBe(true)
})

test('idle does not wait for a handler that never ends, once its lease has lapsed', async () => {
  const never = gate()
  onTestFinished(() => never.open())
  const { port, receiver, seen } = await receive(express5, {
    options: { storeTimeoutMs: 20, leaseMs: 80, maxRunMs: 80 },
    handler: () => never.opened,
  })
  begin(port)
  await seen('lease_lost')
  await receiver.idle()
})

test('idle does not wait for a handler that never ends, and has blocked the process past its lease', async () => {
  const { port, receiver, seen } = await receive(express5, {
    options: { storeTimeoutMs: 20, leaseMs: 80, maxRunMs: 80 },
    handler() {
      for (const until = performance.now() + 100; performance.now() < until; );
      return new Promise(() => {})
    },
  })
  begin(port)
  await seen('lease_lost')
  await receiver.idle()
})

test('idle does not wait for a handler that never ends, once a run without a claim is over', async () => {
  const look = async () => ({ acquired: true, attempt: 1, previousOutcome: 'none', seen: null }) as const
  const store = Object.assign(new MemoryStore() as Store, { unclaimed: { look } as Partial<Unclaimed> as Unclaimed })
  const called = gate()
  const { port, receiver, handled } = await receive(express5, {
    options: { store, effects: 'in-transaction', storeTimeoutMs: 20, leaseMs: 80, maxRunMs: 80 },
    handler() {
      called.open()
      return new Promise(() => {})
    },
  })
  begin(port)
  await called.opened
  await receiver.idle()
  expect(handled[0]?.context.signal.reason).toMatchObject({ code: 'run_failed' })
})

/** A store in which another attempt has taken the record over by the time that the handler ends. */
function takenOver(completed: boolean): Store {
  const store: Store = new MemoryStore()
  const answer: Answer = { status: 200, statusMessage: '', headers: [], body: Buffer.alloc(0) }
  const stale = async (fingerprint: string) =>
    completed
      ? ({ ok: false, record: { state: 'completed', fingerprint, attempt: 2, answer } } as const)
      : ({
          ok: false,
          record: { state: 'in-flight', fingerprint, attempt: 2, uncertain: true, leaseRemainingMs: 1_000 },
        } as const)
  return {
    begin: (key, claim) => store.begin(key, claim),
    renew: (key, own) => store.renew(key, own),
    complete: (_key, { fingerprint }) => stale(fingerprint),
    release: (_key, { fingerprint }) => stale(fingerprint),
  }
}
