import type { ServerResponse } from 'node:http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type ClientOptions, retryingClient } from '../../examples/recipes/client.js'
import { payoutsApp } from '../../examples/recipes/payouts-app.js'
import { listen } from '../support/bindings.js'
import { keyStorage } from './key-storage.js'

/** `timeUp` ends the time of the attempt that is under way. */
type Step = (res: ServerResponse, timeUp: () => void) => void

const OPERATION = 'pay order-1001'
const PROBLEM = { 'Content-Type': 'application/problem+json' }

/** A reply as the library writes it. */
const problem =
  (status: number, code: string, headers: Record<string, string> = {}): Step =>
  (res) =>
    void res
      .writeHead(status, { ...PROBLEM, ...headers })
      .end(JSON.stringify({ type: `urn:once-per-key:problem:${code}`, status, code }))

const done: Step = (res) => void res.writeHead(201).end('{"id":"po_1"}')
const broken: Step = (res) => void res.writeHead(500).end()
const refusal: Step = (res) => void res.writeHead(400).end('{"error":"amount"}')
const loggedOut: Step = (res) => void res.writeHead(401).end()
const inFlight = problem(409, 'in_flight', { 'Retry-After': '2', 'X-Should-Retry': 'true' })
const hangUp: Step = (res) => void res.destroy()
const silence: Step = (_res, timeUp) => timeUp()
const halfAnAnswer: Step = (res) => {
  res.writeHead(201, { 'Content-Length': '100' }).write('{"id":')
  setImmediate(() => res.destroy())
}

/** A server that takes one step for each request, and a client whose pauses and time limits take no time. */
async function start(steps: readonly Step[], options: Partial<ClientOptions> = {}) {
  const seen: { key: string | undefined; body: string }[] = []
  const { port, close } = await listen(async (req, res) => {
    const body = Buffer.concat(await req.toArray()).toString()
    seen.push({ key: req.headers['idempotency-key'] as string | undefined, body })
    const step = steps[seen.length - 1] ?? refusal
    step(res, () => limits.at(-1)?.abort(new DOMException('Its time is up', 'TimeoutError')))
  })
  onTestFinished(close)
  const limits: AbortController[] = []
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
    const limit = new AbortController()
    limits.push(limit)
    return limit.signal
  })
  onTestFinished(() => timeout.mockRestore())
  const pauses: number[] = []
  const keys = keyStorage()
  /** A page that was loaded anew. */
  const client = () => retryingClient({ keys, random: () => 0, pause: async (ms) => pauses.push(ms), ...options })
  const url = `http://127.0.0.1:${port}/payouts`
  const post = ({ operation = OPERATION } = {}) => client().post(operation, url, { amount: 100 })
  const forget = () => client().forget(OPERATION)
  return { seen, keys, pauses, timeout, post, forget }
}

describe('a client that retries', () => {
  test.each<{ name: string; step: Step }>([
    { name: 'a connection that breaks', step: hangUp },
    { name: 'an answer that breaks off', step: halfAnAnswer },
    { name: 'an answer that does not come in time', step: silence },
    { name: '500', step: broken },
    { name: '502 of a gateway', step: (res) => void res.writeHead(502).end('Bad gateway') },
    { name: '429', step: (res) => void res.writeHead(429).end() },
    { name: '409 in_flight', step: inFlight },
    { name: '503 store_unavailable', step: problem(503, 'store_unavailable', { 'X-Should-Retry': 'true' }) },
  ])('sends the same request with the same key after $name', async ({ step }) => {
    const { post, seen, timeout } = await start([step, step, done], { timeoutMs: 5_000 })
    expect(await post()).toMatchObject({ outcome: 'done', answer: { status: 201, body: '{"id":"po_1"}' } })
    expect(seen).toHaveLength(3)
    expect(seen[0]).toEqual({ key: expect.stringMatching(/^[0-9a-f-]{36}$/), body: '{"amount":100}' })
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
    expect(timeout.mock.calls).toEqual([[5_000], [5_000], [5_000]])
  })

  test.each<{ name: string; step: Step }>([
    { name: '400', step: refusal },
    { name: '401', step: (res) => void res.writeHead(401).end() },
    { name: '409 without advice', step: (res) => void res.writeHead(409).end() },
    { name: '500 that says so', step: (res) => void res.writeHead(500, { 'X-Should-Retry': 'false' }).end() },
  ])('does not repeat what was refused with $name, and says that nothing has happened', async ({ step }) => {
    const { post, seen, keys } = await start([step])
    expect(await post()).toMatchObject({ outcome: 'refused' })
    expect(seen).toHaveLength(1)
    expect(keys.all.size).toBe(0)
  })

  test('retries what says that it should be, whatever its status', async () => {
    const { post } = await start([(res) => void res.writeHead(418, { 'X-Should-Retry': 'true' }).end(), done])
    expect(await post()).toMatchObject({ outcome: 'done' })
  })

  test('waits longer each time, up to a bound, and each client for a time of its own', async () => {
    const random = vi.fn(() => 0.5)
    const { post, pauses } = await start(Array(9).fill(broken), { random, maxAttempts: 9, maxPauseMs: 8_000 })
    await post()
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 4_000, 4_000, 4_000, 4_000])
    expect(random).toHaveBeenCalledTimes(8)
  })

  test('waits at least as long as the server says', async () => {
    const { post, pauses } = await start([inFlight, done], { random: () => 0.5 })
    await post()
    expect(pauses).toEqual([2_500])
  })

  test('understands a date, and what is neither', async () => {
    const at = new Date(Date.now() + 20_000).toUTCString()
    const busy =
      (retryAfter: string): Step =>
      (res) =>
        void res.writeHead(503, { 'Retry-After': retryAfter }).end()
    const { post, pauses } = await start([busy(at), busy('soon'), busy('-1'), done])
    expect(await post()).toMatchObject({ outcome: 'done' })
    expect(pauses[0]).toBeGreaterThan(10_000)
    expect(pauses.slice(1)).toEqual([0, 0])
  })
})

describe('a client that gives up says that the outcome is unknown, and keeps the key', () => {
  test.each<{ name: string; steps: readonly Step[]; sent: number }>([
    { name: 'after its last attempt', steps: [broken, hangUp, broken, inFlight], sent: 4 },
    {
      name: 'where it is told to wait too long',
      steps: [problem(503, 'store_unavailable', { 'Retry-After': '3600', 'X-Should-Retry': 'true' })],
      sent: 1,
    },
    {
      name: 'where a refusal that knows of no attempt follows one whose end it did not see',
      steps: [hangUp, loggedOut],
      sent: 2,
    },
    { name: 'on outcome_unknown', steps: [problem(409, 'outcome_unknown', { 'X-Should-Retry': 'false' })], sent: 1 },
    {
      name: 'where the body was changed after a success that it did not see',
      steps: [halfAnAnswer, problem(409, 'mismatched', { 'X-Should-Retry': 'false' })],
      sent: 2,
    },
  ])('$name', async ({ steps, sent }) => {
    const { post, seen, keys } = await start(steps, { maxAttempts: 4 })
    expect(await post()).toMatchObject({ outcome: 'unknown' })
    expect(seen).toHaveLength(sent)
    expect([...keys.all]).toEqual([[OPERATION, seen[0]?.key]])
  })

  test('with the cause', async () => {
    const { post } = await start([hangUp], { maxAttempts: 1 })
    expect(await post()).toMatchObject({ outcome: 'unknown', cause: expect.any(Error) })
  })
})

describe('a key', () => {
  test('is stored before it is sent', async () => {
    const stored: (string | null)[] = []
    const { post, keys, seen } = await start([
      (res, timeUp) => {
        stored.push(keys.getItem(OPERATION))
        done(res, timeUp)
      },
    ])
    await post()
    expect(stored).toEqual([seen[0]?.key])
  })

  test('is the same after a reload, until its answer is safe', async () => {
    const { post, forget, seen } = await start([hangUp, done, done, done], { maxAttempts: 1 })
    expect(await post()).toMatchObject({ outcome: 'unknown' })
    expect(await post()).toMatchObject({ outcome: 'done' })
    expect(await post()).toMatchObject({ outcome: 'done' })
    forget()
    await post()
    const keys = seen.map(({ key }) => key)
    expect([...new Set(keys.slice(0, 3))]).toEqual([keys[0]])
    expect(keys[3]).not.toBe(keys[0])
  })

  test.each([401, 403, 404, 413])('after a reload, %i does not say that nothing has happened', async (status) => {
    const refusal: Step = (res) => void res.writeHead(status).end()
    const { post, keys } = await start([hangUp, refusal, done], { maxAttempts: 1 })
    await post()
    expect(await post()).toMatchObject({ outcome: 'unknown', answer: { status } })
    expect(keys.all.size).toBe(1)
    expect(await post()).toMatchObject({ outcome: 'done' })
  })

  test('is kept through a refusal by a service whose handlers do not look into their books', async () => {
    const { post, keys } = await start([hangUp, refusal, done], { settles: () => false })
    expect(await post()).toMatchObject({ outcome: 'unknown', answer: { status: 400 } })
    expect(keys.all.size).toBe(1)
    expect(await post()).toMatchObject({ outcome: 'done' })
  })

  test('is another for another operation', async () => {
    const { post, seen } = await start([done, done])
    await post({ operation: 'pay order-1001' })
    await post({ operation: 'pay order-1002' })
    expect(seen[0]?.key).not.toBe(seen[1]?.key)
  })
})

test('a success whose answer was not kept has happened', async () => {
  const { post } = await start([halfAnAnswer, problem(409, 'answer_not_kept', { 'X-Should-Retry': 'false' })])
  expect(await post()).toMatchObject({ outcome: 'done', answer: { status: 409 } })
})

test('against the middleware: an answer that is lost on the way is given again, and one payout is made', async () => {
  const bank = { transfer: vi.fn(async () => ({ id: 'po_1' })) }
  const { app } = payoutsApp({ store: new MemoryStore(), bank })
  let requests = 0
  const { port, close } = await listen((req, res) => {
    requests++
    if (requests <= 2) cutAtTheAnswer(res)
    app(req, res)
  })
  onTestFinished(close)
  const client = retryingClient({ keys: keyStorage(), pause: async () => {} })
  const headers = { Authorization: 'Bearer demo_acme' }

  const outcome = await client.post(OPERATION, `http://127.0.0.1:${port}/payouts`, { amount: 100 }, headers)
  expect(outcome).toMatchObject({ outcome: 'done', answer: { status: 201, body: '{"id":"po_1"}' } })
  expect(outcome.answer?.headers.get('Idempotent-Replayed')).toBe('true')
  expect(requests).toBe(3)
  expect(bank.transfer).toHaveBeenCalledTimes(1)
})

/** The network breaks where the first byte of the answer would leave. */
function cutAtTheAnswer(res: ServerResponse): void {
  const { socket } = res
  if (socket !== null) socket.write = () => socket.destroy().writable
}
