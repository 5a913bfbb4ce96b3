import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { BINDINGS, jsonBody, listen, type Step } from '../support/bindings.js'
import { begin, deliver, merchantUpdated, receive } from '../support/deliveries.js'
import { gate } from '../support/gate.js'
import { request } from '../support/raw-client.js'
import { problemIn } from './problem-in.js'

const OTHER = merchantUpdated({ payload: { id: 'mer_1', displayName: 'Globex' } })

describe.each(BINDINGS)('on $name', (binding) => {
  test('an event is handled once, and its repeat is answered 200 without running', async () => {
    const { port, handled, events } = await receive(binding)
    const first = await deliver(port)
    expect([first.status, first.body.length, first.header('idempotent-replayed')]).toEqual([200, 0, undefined])
    const repeat = await deliver(port)
    expect([repeat.status, repeat.body.length, repeat.header('idempotent-replayed')]).toEqual([200, 0, 'true'])
    expect(handled.map(({ event }) => event)).toEqual([merchantUpdated()])
    expect(events).toEqual([
      { type: 'claimed', scope: 'payments', key: 'evt_1', attempt: 1, previousOutcome: 'none', because: 'new' },
      { type: 'completed', scope: 'payments', key: 'evt_1', attempt: 1, status: 200, answerKept: true },
      { type: 'replayed', scope: 'payments', key: 'evt_1', attempt: 1 },
    ])
  })

  test('an event whose handler throws is answered 500 and released, and the next delivery runs', async () => {
    const oops = new Error('the database is away')
    let failing = true
    const { port, handled, events } = await receive(binding, {
      handler() {
        if (failing) throw oops
      },
    })
    const failed = await deliver(port)
    expect(problemIn(failed)).toEqual({
      status: 500,
      code: 'handler_failed',
      shouldRetry: 'true',
      retryAfter: undefined,
    })
    expect(failed.body.toString()).not.toContain('database')
    expect(events.slice(1)).toEqual([
      { type: 'handler_failed', scope: 'payments', key: 'evt_1', attempt: 1, error: oops },
      { type: 'failed', scope: 'payments', key: 'evt_1', attempt: 1, uncertain: true, because: 'status' },
    ])
    failing = false
    expect((await deliver(port)).status).toBe(200)
    expect(handled.map(({ context: { attempt, previousOutcome } }) => [attempt, previousOutcome])).toEqual([
      [1, 'none'],
      [2, 'unknown'],
    ])
  })

  test('an event whose handler rejects is answered 500', async () => {
    const { port } = await receive(binding, { handler: () => Promise.reject(new Error('no')) })
    expect((await deliver(port)).status).toBe(500)
  })

  test('a repeat while the handler runs is answered 409 in_flight, and 200 at the first byte of the answer', async () => {
    const { opened, open } = gate()
    const running = gate()
    const { port, handled } = await receive(binding, {
      handler() {
        running.open()
        return opened
      },
    })
    const first = begin(port)
    await running.opened
    expect(problemIn(await deliver(port))).toEqual({
      status: 409,
      code: 'in_flight',
      shouldRetry: 'true',
      retryAfter: '1',
    })
    open()
    await first.firstByte
    expect((await deliver(port)).status).toBe(200)
    expect((await first.reply()).status).toBe(200)
    expect(handled).toHaveLength(1)
  })

  test('the same id with another content is answered 409 mismatched, in flight or handled', async () => {
    const { opened, open } = gate()
    const running = gate()
    const { port, handled } = await receive(binding, {
      handler() {
        running.open()
        return opened
      },
    })
    const mismatched = { status: 409, code: 'mismatched', shouldRetry: 'false', retryAfter: undefined }
    const first = begin(port)
    await running.opened
    expect(problemIn(await deliver(port, { body: OTHER }))).toEqual(mismatched)
    open()
    await first.reply()
    expect(problemIn(await deliver(port, { body: OTHER }))).toEqual(mismatched)
    expect(handled).toHaveLength(1)
  })

  test('a number that a double does not hold is content, too', async () => {
    const { port, handled } = await receive(binding)
    const limitedTo = (limit: string) => JSON.stringify(merchantUpdated()).replace('"payload":{', `$&"limit":${limit},`)
    expect((await deliver(port, { body: limitedTo('9007199254740993') })).status).toBe(200)
    expect((await deliver(port, { body: limitedTo('9007199254740993.0') })).status).toBe(200)
    expect((await deliver(port, { body: limitedTo('9007199254740992') })).status).toBe(409)
    expect(handled).toHaveLength(1)
  })

  test('of 100 deliveries at once one runs', async () => {
    const { opened, open } = gate()
    const { port, handled, events } = await receive(binding, { handler: () => opened })
    const waiting = Array.from({ length: 100 }, () => deliver(port))
    const answers = Promise.all(waiting)
    const refused = await Promise.race([answers, settledBut(1, waiting)])
    open()
    const statuses = (await answers).map(({ status }) => status).sort()
    expect(refused).toBe('all but one')
    expect(statuses).toEqual([200, ...Array.from({ length: 99 }, () => 409)])
    expect(handled).toHaveLength(1)
    expect(events.filter(({ type }) => type === 'in_flight')).toHaveLength(99)
  })

  test('a handler goes on when its client leaves, and its end counts', async () => {
    const { opened, open } = gate()
    const running = gate()
    const { port, handled, seen, receiver, server } = await receive(binding, {
      handler() {
        running.open()
        return opened
      },
    })
    const left = new Promise<void>((resolve) =>
      server.once('connection', (socket) => socket.once('close', () => resolve())),
    )
    const first = begin(port)
    await running.opened
    first.socket.destroy()
    await left
    open()
    await seen('completed')
    await receiver.idle()
    expect((await deliver(port)).header('idempotent-replayed')).toBe('true')
    expect(handled).toHaveLength(1)
  })
})

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

describe('what counts', () => {
  test('a repeat may have another date, and members in another order', async () => {
    const { port, handled } = await receive(express5)
    await deliver(port)
    const { id, type, payload } = merchantUpdated() as Record<string, unknown>
    const reordered = `{ "payload": {"displayName":"Acme","id":"mer_1"}, "date": "later", "type": "${type}", "id": "${id}" }`
    expect(payload).toEqual({ id: 'mer_1', displayName: 'Acme' })
    expect((await deliver(port, { body: reordered })).status).toBe(200)
    expect(handled).toHaveLength(1)
  })

  test('an unknown field counts in the payload: an event keeps its content', async () => {
    const { port } = await receive(express5)
    await deliver(port)
    const more = merchantUpdated({ payload: { id: 'mer_1', displayName: 'Acme', isNew: true } })
    expect((await deliver(port, { body: more })).status).toBe(409)
  })

  test('the payload counts as it was sent, with what parsing drops', async () => {
    const { port } = await receive(express5)
    const body = (value: number) =>
      `{"id":"evt_1","type":"merchant_updated","date":"d","payload":{"__proto__":{"n":${value}}}}`
    expect((await deliver(port, { body: body(1) })).status).toBe(200)
    expect((await deliver(port, { body: body(1) })).status).toBe(200)
    expect((await deliver(port, { body: body(2) })).status).toBe(409)
  })

  test('two ids are two events, and two sources never meet', async () => {
    const { port, handled } = await receive(express5, {
      options: { source: (req) => req.headers['x-merchant'] as string },
    })
    for (const merchant of ['acme', 'globex']) {
      for (const id of ['evt_1', 'evt_2']) {
        const reply = await deliver(port, { headers: { 'X-Merchant': merchant }, body: merchantUpdated({ id }) })
        expect([reply.status, reply.header('idempotent-replayed')]).toEqual([200, undefined])
      }
    }
    expect(handled.map(({ event, context }) => `${context.source} ${event.id}`)).toEqual([
      'acme evt_1',
      'acme evt_2',
      'globex evt_1',
      'globex evt_2',
    ])
  })

  test('two receivers on one store are one where they name one source, and two where they do not', async () => {
    const store = new MemoryStore()
    const one = await receive(express5, { options: { store } })
    const same = await receive(express5, { options: { store } })
    const other = await receive(express5, { options: { store, source: 'others' } })
    for (const { port } of [one, same, other]) expect((await deliver(port)).status).toBe(200)
    expect([one, same, other].map(({ handled }) => handled.length)).toEqual([1, 0, 1])
  })

  test('the records are apart from those of the middleware in the same store', async () => {
    const store = new MemoryStore()
    const { port, handled } = await receive(express5, { options: { store } })
    const once = idempotency({ store, scope: () => 'payments' })
    const answer: Step = (_req, res) => res.end('the middleware')
    const app = await listen(express5.listener([jsonBody, once as Step, answer]))
    const ask = () => request(app.port, { path: '/payouts', key: 'evt_1', body: merchantUpdated() })
    try {
      expect((await deliver(port)).status).toBe(200)
      expect([(await ask()).status, (await ask()).header('idempotent-replayed')]).toEqual([200, 'true'])
      expect((await deliver(port)).header('idempotent-replayed')).toBe('true')
      expect(handled).toHaveLength(1)
    } finally {
      await app.close()
    }
  })

  test('an event is remembered for 31 days, and longer where that is configured', async () => {
    const day = 24 * 3_600_000
    for (const { options, days } of [
      { options: {}, days: 31 },
      { options: { retentionMs: 60 * day }, days: 60 },
    ]) {
      let now = 1
      const store = new MemoryStore({ now: () => now })
      const { port, handled } = await receive(express5, { options: { store, ...options } })
      await deliver(port)
      now += days * day - 1_000
      await deliver(port)
      expect(handled).toHaveLength(1)
      now += 2_000
      await deliver(port)
      expect(handled).toHaveLength(2)
    }
  })
})

describe('a handler gets', () => {
  test('the event, its source, and the means of the middleware', async () => {
    const { port, handled } = await receive(express5)
    await deliver(port, { body: merchantUpdated({ isTest: true }) })
    const [{ event, context } = {}] = handled
    expect(event).toEqual(merchantUpdated({ isTest: true }))
    expect(context).toMatchObject({ source: 'payments', attempt: 1, previousOutcome: 'none' })
    expect(context?.signal.aborted).toBe(false)
  })

  test('keys for calls to other services that every attempt derives alike', async () => {
    const derived: string[] = []
    const { port } = await receive(express5, {
      handler(_event, { deriveKey, attempt }) {
        derived.push(deriveKey('mail'), deriveKey('ledger'))
        if (attempt === 1) throw new Error('no')
      },
    })
    await deliver(port)
    await deliver(port)
    expect(derived.slice(2)).toEqual(derived.slice(0, 2))
    expect(new Set(derived).size).toBe(2)
  })

  test('nothing that could end the run behind its back', async () => {
    const { port, handled } = await receive(express5)
    await deliver(port)
    expect(Object.keys(handled[0]?.context ?? {}).sort()).toEqual(
      ['attempt', 'deriveKey', 'mayHaveEffect', 'previousOutcome', 'signal', 'source', 'step'].sort(),
    )
  })
})

/** Resolves once all but `count` of them have. */
async function settledBut(count: number, promises: readonly Promise<unknown>[]): Promise<string> {
  let settled = 0
  await new Promise<void>((resolve) => {
    for (const each of promises) {
      void each.then(() => {
        settled++
        if (settled === promises.length - count) resolve()
      })
    }
  })
  return 'all but one'
}
