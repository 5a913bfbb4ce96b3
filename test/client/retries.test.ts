import { getEventListeners } from 'node:events'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import * as trial from './trial.js'
import { broken, done, hangUp, inFlight, reply, type Step, silence, start } from './trial.js'

/** What jitter draws. */
function drawing(part: number) {
  const random = vi.spyOn(Math, 'random').mockReturnValue(part)
  onTestFinished(() => random.mockRestore())
  return random
}

describe('the same request goes out again, with the same key, after', () => {
  test.each<{ name: string; step: Step }>([
    { name: 'a connection that breaks', step: hangUp },
    { name: 'a body that breaks off', step: trial.halfAnAnswer },
    { name: 'a response that does not come in time', step: silence },
    { name: '408', step: reply(408) },
    { name: '429', step: reply(429) },
    { name: '500', step: broken },
    { name: '502 of a gateway', step: reply(502, {}, 'Bad gateway') },
    { name: '409 in_flight', step: inFlight },
    { name: '409 in_flight whose headers CORS hides', step: trial.problem(409, 'in_flight') },
    { name: '503 store_unavailable', step: trial.storeUnavailable },
    { name: 'whatever says X-Should-Retry: true', step: reply(418, { 'X-Should-Retry': 'true' }) },
  ])('$name', async ({ step }) => {
    const { send, seen } = start([step, step, done])
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect(seen.map(({ key, body, init }) => [init.method, key, body])).toEqual(
      Array(3).fill(['POST', expect.stringMatching(/^\d{13}(-\d+){4}$/), trial.BODY]),
    )
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1)
  })
})

describe('nothing goes out again after', () => {
  test.each<{ name: string; step: Step }>([
    { name: '201', step: done },
    { name: '204', step: reply(204) },
    { name: '303', step: reply(303) },
    { name: '400', step: trial.declined },
    { name: '401', step: trial.loggedOut },
    { name: '409 without advice', step: reply(409) },
    { name: '409 mismatched', step: trial.mismatched },
    { name: '503 that says X-Should-Retry: false', step: reply(503, { 'X-Should-Retry': 'false' }) },
  ])('$name', async ({ step }) => {
    const { send, seen } = start([step])
    await send()
    expect(seen).toHaveLength(1)
  })
})

describe('a pause', () => {
  const FROM_1_000 = Array(7).fill(broken)

  test.each([
    { name: 'is at most twice as long as the one before, and 8 s', part: 1, of: [0.5, 1, 2, 4, 8, 8, 8] },
    { name: 'is any part of that, so that clients come apart', part: 0.25, of: [0.125, 0.25, 0.5, 1, 2, 2, 2] },
    { name: 'may be none', part: 0, of: [0, 0, 0, 0, 0, 0, 0] },
  ])('without Retry-After $name', async ({ part, of }) => {
    const random = drawing(part)
    const { send, pauses } = start([...FROM_1_000, done])
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect(pauses()).toEqual(of.map((seconds) => seconds * 1_000))
    expect(random).toHaveBeenCalledTimes(7)
  })

  test.each([
    { name: 'seconds', retryAfter: '3', from: 3_000 },
    { name: 'a date', retryAfter: 'in 20 s', from: 20_000 },
  ])('with Retry-After as $name is that long, and up to a second more', async ({ retryAfter, from }) => {
    for (const part of [0, 0.5]) {
      drawing(part)
      const busy: Step = () => {
        const value = retryAfter === 'in 20 s' ? new Date(Date.now() + 20_000).toUTCString() : retryAfter
        return new Response('', { status: 503, headers: { 'Retry-After': value } })
      }
      const { send, pauses } = start([busy, done])
      vi.setSystemTime(new Date('2026-03-01T12:00:00Z')) // dates have whole seconds
      await send()
      expect(pauses()).toEqual([from + part * 1_000])
    }
  })

  test.each(['0', '-1', 'soon', 'Thu, 01 Jan 1970 00:00:00 GMT', ''])(
    'with Retry-After %j is as without',
    async (value) => {
      drawing(0.5)
      const busy = reply(503, { 'Retry-After': value })
      const { send, pauses } = start([busy, busy, done])
      await send()
      expect(pauses()).toEqual([250, 500])
    },
  )
})

describe('a call ends with `unknown`, and keeps the key,', () => {
  const SLOW: Step = reply(503, { 'Retry-After': '30' })

  test.each<{ name: string; steps: readonly Step[]; options?: object; sent: number; endsAtMs: number }>([
    { name: 'after its last try', steps: Array(8).fill(broken), sent: 8, endsAtMs: 0 },
    { name: 'after the last of `maxTries`', steps: [hangUp, hangUp], options: { maxTries: 2 }, sent: 2, endsAtMs: 0 },
    { name: 'at once where it is told to wait too long', steps: [SLOW, SLOW], sent: 2, endsAtMs: 30_000 },
    {
      name: 'when its time is over, in the middle of a try',
      steps: Array(8).fill(silence),
      options: { tryTimeoutMs: 7_000, totalTimeoutMs: 18_000 },
      sent: 3,
      endsAtMs: 18_000,
    },
  ])('$name', async ({ steps, options, sent, endsAtMs }) => {
    drawing(0)
    const { send, seen, keys } = start(steps, options)
    const startedAt = performance.now()
    expect(await send()).toMatchObject({ outcome: 'unknown' })
    expect(performance.now() - startedAt).toBe(endsAtMs)
    expect(seen).toHaveLength(sent)
    expect([...keys.all.values()]).toEqual([seen[0]?.key])
  })

  test('with the error where the last try had no response', async () => {
    const { send } = start([broken, hangUp], { maxTries: 2 })
    const end = await send()
    expect(end).toMatchObject({ outcome: 'unknown', cause: new TypeError('fetch failed') })
    expect(end.response).toBeUndefined()
  })

  test('with a TimeoutError where it did not end in time', async () => {
    const { send } = start([silence], { maxTries: 1, tryTimeoutMs: 700 })
    expect(await send()).toMatchObject({ cause: { name: 'TimeoutError' } })
    expect(performance.now()).toBeGreaterThanOrEqual(700)
  })

  test('and goes on with it at the next call', async () => {
    const { send, seen } = start([hangUp, trial.replayed], { maxTries: 1 })
    expect(await send()).toMatchObject({ outcome: 'unknown' })
    expect(await send()).toMatchObject({ outcome: 'done', replayed: true })
    expect(seen[1]?.key).toBe(seen[0]?.key)
  })
})

describe('a time limit holds', () => {
  test('where the `fetch` that was given ignores its signal', async () => {
    const deaf: Step = () => new Promise(() => {})
    const { send } = start([deaf, deaf], { maxTries: 2, tryTimeoutMs: 700 })
    expect(await send()).toMatchObject({ outcome: 'unknown', cause: { name: 'TimeoutError' } })
  })

  test('for a body, too', async () => {
    const endless: Step = () => new Response(new ReadableStream(), { status: 201 })
    const { send } = start([endless, done], { tryTimeoutMs: 700 })
    expect(await send()).toMatchObject({ outcome: 'done' })
  })
})

describe('a caller who aborts', () => {
  const REASON = new Error('the user left')

  test('ends a try', async () => {
    const controller = new AbortController()
    const { send, seen, keys } = start([
      (sent) => {
        setImmediate(() => controller.abort(REASON))
        return silence(sent)
      },
    ])
    expect(await send({ signal: controller.signal })).toMatchObject({ outcome: 'unknown', cause: REASON })
    expect(seen).toHaveLength(1)
    expect(keys.all.size).toBe(1)
  })

  test('ends a pause', async () => {
    const controller = new AbortController()
    const { client, seen } = start([reply(503, { 'Retry-After': '50' })])
    const call = client().send(trial.OPERATION, trial.URL_OF_PAYOUTS, { signal: controller.signal })
    await vi.waitFor(() => expect(seen).toHaveLength(1), { interval: 1 })
    controller.abort(REASON)
    expect(await call).toMatchObject({ outcome: 'unknown', cause: REASON, response: { status: 503 } })
    await vi.waitFor(() => expect(vi.getTimerCount()).toBe(0), { interval: 1 })
  })

  test('ends a pause that is about to begin', async () => {
    const controller = new AbortController()
    const { send } = start([broken])
    drawing(1).mockImplementation(() => {
      controller.abort(REASON)
      return 1
    })
    const startedAt = performance.now()
    expect(await send({ signal: controller.signal })).toMatchObject({ outcome: 'unknown', cause: REASON })
    expect(performance.now()).toBe(startedAt)
  })

  test('before the call sends nothing', async () => {
    const { send, seen } = start([done])
    expect(await send({ signal: AbortSignal.abort(REASON) })).toMatchObject({ outcome: 'unknown', cause: REASON })
    expect(seen).toEqual([])
  })

  test('after the end takes no body away', async () => {
    const controller = new AbortController()
    const { send } = start([done])
    const end = await send({ signal: controller.signal })
    controller.abort(REASON)
    expect(await end.response?.json()).toEqual({ id: 'po_1' })
  })
})

test('no timer and no listener outlives a call', async () => {
  const { signal } = new AbortController()
  const { send } = start([broken, done])
  await send({ signal })
  expect(getEventListeners(signal, 'abort')).toEqual([])
  expect(vi.getTimerCount()).toBe(0)
})
