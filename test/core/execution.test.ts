import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { gated, loseReply } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const { storeTimeoutMs } = { storeTimeoutMs: 1_000 }

describe('the end of a run', () => {
  test.each([
    ...[200, 201, 202, 204, 299, 300, 301, 302, 303, 304, 399].map((status) => ({ status, end: 'completed' })),
    ...[307, 308, 400, 401, 404, 409, 422, 499, 500, 503, 599, 103].map((status) => ({ status, end: 'failed' })),
  ])('$status is $end', async ({ status, end }) => {
    const { run, types, store } = engineOnTrial()
    expect(await (await run()).settle(answer(status))).toEqual({ action: 'send' })
    expect(types()).toEqual(['claimed', end])
    expect(store.names()).toEqual(['begin', end === 'completed' ? 'complete' : 'release'])
  })

  test('without an answer is a failure', async () => {
    const { run, types } = engineOnTrial()
    expect(await (await run()).fail()).toEqual({ action: 'send' })
    expect(types()).toEqual(['claimed', 'failed'])
  })

  test('is as `isSuccess` says, which is given the answer and the request', async () => {
    const isSuccess = vi.fn((made: { status: number }) => made.status === 404)
    const { run, types } = engineOnTrial({ isSuccess })
    const request = { key: 'order-9' }
    const made = answer(404)
    await (await run(request)).settle(made)
    await (await run()).settle(answer(200))
    expect(types()).toEqual(['claimed', 'completed', 'claimed', 'failed'])
    expect(isSuccess.mock.calls[0]).toEqual([made, request])
  })

  test.each([
    { status: 200, command: 'complete' },
    { status: 400, command: 'release' },
  ] as const)(
    'by $status is told to send only when the store has confirmed its $command',
    async ({ status, command }) => {
      const { run, store } = engineOnTrial()
      const { fault, open } = gated()
      store.next(command, fault)
      const settled = vi.fn()
      const settling = Promise.resolve((await run()).settle(answer(status))).then(settled)
      await vi.advanceTimersByTimeAsync(storeTimeoutMs - 1)
      expect(settled).not.toHaveBeenCalled()
      open()
      await settling
      expect(settled).toHaveBeenCalledWith({ action: 'send' })
    },
  )

  test('counts once: a second one changes nothing, and is told what the first was told', async () => {
    const { run, send, store, types } = engineOnTrial()
    const execution = await run()
    const first = execution.settle(answer(201, 'first'))
    const second = execution.settle(answer(201, 'second'))
    expect([await second, await execution.fail()]).toEqual([await first, await first])
    expect(store.names()).toEqual(['begin', 'complete'])
    expect(types()).toEqual(['claimed', 'completed'])
    const replay = await send()
    expect(replay.action === 'replay' && String(replay.answer.body)).toBe('first')
  })

  test('by failure counts once as well: a late answer completes nothing', async () => {
    const { run, store } = engineOnTrial()
    const execution = await run()
    await execution.settle(answer(422))
    await execution.settle(answer())
    expect(store.names()).toEqual(['begin', 'release'])
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  })

  test('keeps the headers that a replay gives back, and no others', async () => {
    const { run, send } = engineOnTrial({ keepHeader: (name, byDefault) => byDefault && name !== 'x-secret' })
    const headers = [
      ['Link', '</a>; rel="next"'],
      ['Link', '</b>; rel="prev"'],
      ['Date', 'now'],
      ['Set-Cookie', 'a=1'],
      ['X-Secret', '1'],
      ['Connection', 'close'],
    ] as const
    await (await run()).settle({ ...answer(), headers })
    const replay = await send()
    expect(replay.action === 'replay' && replay.answer.headers).toEqual([
      headers[0],
      headers[1],
      ['Idempotent-Replayed', 'true'],
    ])
  })
})

describe('mayHaveEffect()', () => {
  test('before a success changes nothing: it is completed', async () => {
    const { run, send, events } = engineOnTrial()
    const execution = await run()
    execution.context.mayHaveEffect()
    await execution.settle(answer())
    expect(events.at(-1)).toMatchObject({ type: 'completed' })
    expect(outcomeOf(await send())).toBe('replay')
  })

  test('after the end of the run changes nothing', async () => {
    const { run } = engineOnTrial()
    const execution = await run()
    await execution.settle(answer(422))
    execution.context.mayHaveEffect()
    expect((await run()).context).toMatchObject({ previousOutcome: 'failed' })
  })

  test('holds for a release whose first reply is lost', async () => {
    const { run, store } = engineOnTrial()
    const execution = await run()
    execution.context.mayHaveEffect()
    store.next('release', loseReply)
    const settling = execution.settle(answer(500))
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs / 2) // A renewal was answered in between: it will not come any more.
    await settling
    expect(store.sent.filter(({ command }) => command === 'release').map(({ terms }) => terms.uncertain)).toEqual([
      true,
      true,
    ])
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
  })

  test('of an earlier attempt is not forgotten by a later certain failure, nor ended but by completion', async () => {
    const { run, send } = engineOnTrial()
    const first = await run()
    first.context.mayHaveEffect()
    await first.fail()
    for (const attempt of [2, 3]) {
      const execution = await run()
      expect(execution.context).toMatchObject({ attempt, previousOutcome: 'unknown' })
      await execution.settle(answer(422))
    }
    await (await run()).settle(answer())
    expect(outcomeOf(await send())).toBe('replay')
  })
})

test('a body is kept up to `maxAnswerBytes`, and an event stream never', async () => {
  const execution = await engineOnTrial({ maxAnswerBytes: 10 }).run()
  const kept = (bytes: number, type: unknown) => execution.keepsBody(bytes, type)
  expect([kept(0, undefined), kept(10, 'application/json'), kept(11, 'application/json')]).toEqual([true, true, false])
  expect(kept(0, 'text/event-stream')).toBe(false)
})
