import type { RequestHandler } from 'express'
import type { Store } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { functionApp, functionHandler } from '../../examples/recipes/serverless.js'
import { listen } from '../support/bindings.js'
import { failingStore } from '../support/failing-store.js'
import { fakeClock } from '../support/fake-clock.js'
import { gate } from '../support/gate.js'
import { counted, served } from './served.js'

const TIME_LIMIT_MS = 60_000

/** The store that all instances of the function reach, and its clock. */
function ground() {
  const clock = fakeClock()
  return { clock, store: new MemoryStore({ now: clock.now }) }
}

interface Reply {
  readonly status: number
  readonly text: string
  readonly replayed: boolean
  readonly retryAfter: string | null
}

/** An instance of the function: it serves one request at a time, and the platform may end it in the middle of one. */
async function instance(store: Store, createPayout: RequestHandler, timeLimitMs = TIME_LIMIT_MS) {
  const wire = failingStore(store)
  const { app, once } = functionApp({ store: wire, timeLimitMs, createPayout })
  const { port, close } = await listen(app)
  onTestFinished(close)

  async function respond(body: object): Promise<Reply> {
    const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
      method: 'POST',
      headers: {
        Authorization: 'Bearer demo_acme',
        'Content-Type': 'application/json',
        'Idempotency-Key': 'order-1',
      },
      body: JSON.stringify(body),
    })
    const { status, headers } = response
    const replayed = headers.get('Idempotent-Replayed') === 'true'
    return { status, text: await response.text(), replayed, retryAfter: headers.get('Retry-After') }
  }

  return {
    wire,
    respond,
    once,
    invoke: functionHandler(respond, once),
    /** The time limit: nothing of the instance reaches the store any more, and its client hears of it from the platform. */
    async end() {
      for (const command of ['begin', 'renew', 'complete', 'release'] as const) wire.always(command, cutOff)
      await close()
    },
  }
}

const cutOff = () => new Promise<never>(() => {})

describe('a function whose time limit ends', () => {
  test('keeps its key until nothing of it can run any more, and the next instance is told', async () => {
    const { clock, store } = ground()
    const { opened, open } = gate()
    onTestFinished(() => open())
    const hanging = counted(() => opened)
    const first = await instance(store, hanging.handler)
    const lost = first.invoke({ amount: 100 }).catch(() => 'ended by the platform')
    await expect.poll(hanging.runs).toBe(1)
    clock.advance(TIME_LIMIT_MS - 1)

    const outcomes: unknown[] = []
    const second = await instance(store, (req, res) => {
      outcomes.push(req.idempotency?.previousOutcome)
      res.status(201).json({ made: 'by the second' })
    })
    expect(await second.invoke({ amount: 100 })).toMatchObject({ status: 409, retryAfter: '1' })

    await first.end()
    expect(await lost).toBe('ended by the platform')
    expect(await second.invoke({ amount: 100 })).toMatchObject({ status: 409 })
    clock.advance(1)
    expect(await second.invoke({ amount: 100 })).toMatchObject({ status: 201, text: '{"made":"by the second"}' })
    expect(outcomes).toEqual(['unknown'])
  })

  test('cannot undo, when it thaws, what the next instance has done', async () => {
    const { clock, store } = ground()
    const { opened, open } = gate()
    const frozen = counted(() => opened)
    const first = await instance(store, frozen.handler)
    const late = first.invoke({ amount: 100 })
    await expect.poll(frozen.runs).toBe(1)
    clock.advance(TIME_LIMIT_MS)

    const second = await instance(store, (_req, res) => void res.status(201).json({ made: 'by the second' }))
    const answer = await second.invoke({ amount: 100 })
    open()
    expect(await late).toMatchObject({ status: 201, text: answer.text })
  })
})

test('an instance that is not ended does not keep a key for longer than its time limit and a lease', async () => {
  const store = new MemoryStore()
  const { opened, open } = gate()
  onTestFinished(() => open())
  const hanging = counted(() => opened)
  const first = await instance(store, hanging.handler, 100)
  first.respond({ amount: 100 }).catch(() => {})
  await expect.poll(hanging.runs).toBe(1)
  const second = await instance(store, counted().handler, 100)
  const status = async () => (await second.respond({ amount: 100 })).status
  await expect.poll(status, { timeout: 4_000 }).toBe(201)
})

describe('before an instance is frozen', () => {
  test('its handler waits for a completion that the store has not confirmed', async () => {
    const { store } = ground()
    // A short limit: the store has a quarter of it before the reply goes out without its word.
    const { wire, respond, once } = await instance(store, counted().handler, 1_200)
    const confirmed = gate()
    wire.next('complete', async (take) => {
      await confirmed.opened
      return take()
    })
    const order: string[] = []
    const replied = gate()
    const respondAndTell = async (body: object) => {
      const reply = await respond(body)
      order.push(`replied ${reply.status}`)
      replied.open()
      return reply
    }
    const handler = functionHandler(respondAndTell, once, 60_000)

    const frozen = handler({ amount: 100 }).then(() => order.push('frozen'))
    await replied.opened
    await new Promise(setImmediate)
    order.push('confirmed')
    confirmed.open()
    await frozen
    expect(order).toEqual(['replied 201', 'confirmed', 'frozen'])
    expect(await respond({ amount: 100 })).toMatchObject({ replayed: true })
  })

  test('its handler does not wait for ever for a run that goes on', async () => {
    const { opened, open } = gate()
    onTestFinished(() => open())
    const hanging = counted(() => opened)
    const { app, once } = functionApp({ ...ground(), timeLimitMs: TIME_LIMIT_MS, createPayout: hanging.handler })
    const { post } = await served(app)
    post().catch(() => {})
    await expect.poll(hanging.runs).toBe(1)
    const handler = functionHandler(async () => 'the reply', once, 10)
    expect(await handler('an event')).toBe('the reply')
  })
})

test('a retry on another instance is given the answer', async () => {
  const { store } = ground()
  const payout = counted()
  const [first, second] = [await instance(store, payout.handler), await instance(store, payout.handler)]
  const answer = await first.invoke({ amount: 100 })
  expect(await second.invoke({ amount: 100 })).toEqual({ ...answer, replayed: true })
  expect(payout.runs()).toBe(1)
})

test.each([3_000, 6_000, TIME_LIMIT_MS, 15 * 60_000])(
  'a time limit of %i ms is one that the options take',
  (timeLimitMs) => {
    const parts = { store: new MemoryStore(), timeLimitMs, createPayout: counted().handler }
    expect(() => functionApp(parts)).not.toThrow()
  },
)
