import { setImmediate } from 'node:timers/promises'
import type { IdempotencyOptions, Problem } from 'once-per-key/http'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createProblem } from '../../src/http/answer/problem.js'
import { engineOnTrial, type Options } from '../support/engine-on-trial.js'
import { answer, type Request } from '../support/request-facts.js'

const unhandled = vi.fn()
process.on('unhandledRejection', unhandled)
afterEach(() => unhandled.mockClear())

const PROBLEM: Problem = createProblem('in_flight', { retryAfterMs: 1_000, problemStatuses: {} })

function rendered(renderProblem: unknown) {
  const { engine, events } = engineOnTrial({ renderProblem } as Options)
  const { status, headers, body } = engine.answerFor({ action: 'reject', problem: PROBLEM }, { key: 'order-1' })
  return { status, headers: Object.fromEntries(headers), body: String(body), events }
}

describe('renderProblem', () => {
  test.each([
    { name: 'a text', rendering: { body: 'busy' }, type: 'application/problem+json', body: 'busy' },
    { name: 'an empty text', rendering: { body: '' }, type: 'application/problem+json', body: '' },
    {
      name: 'an object',
      rendering: { body: { error: 'busy' } },
      type: 'application/problem+json',
      body: '{"error":"busy"}',
    },
    {
      name: 'a text with its type',
      rendering: { body: 'ünready', contentType: 'text/plain; charset=utf-8' },
      type: 'text/plain; charset=utf-8',
      body: 'ünready',
    },
  ])('replaces the shape by $name; status and the other headers stay', ({ rendering, type, body }) => {
    const { events, ...response } = rendered(() => rendering)
    expect(response).toEqual({
      status: 409,
      headers: { 'Content-Type': type, 'Retry-After': '1', 'X-Should-Retry': 'true' },
      body,
    })
    expect(events).toEqual([])
  })

  test('is given the problem and the request', () => {
    const renderProblem = vi.fn(() => ({ body: '' }))
    rendered(renderProblem)
    expect(renderProblem).toHaveBeenCalledWith(PROBLEM, { key: 'order-1' })
  })

  const circular: Record<string, unknown> = {}
  circular.self = circular

  test.each([
    {
      name: 'throws',
      renderProblem: () => {
        throw new Error('boom')
      },
    },
    { name: 'answers nothing', renderProblem: () => undefined },
    { name: 'answers null', renderProblem: () => null },
    { name: 'answers no body', renderProblem: () => ({ contentType: 'text/plain' }) },
    { name: 'answers a body of null', renderProblem: () => ({ body: null }) },
    { name: 'answers a body that is a number', renderProblem: () => ({ body: 1 }) },
    { name: 'answers a body that JSON cannot hold', renderProblem: () => ({ body: circular }) },
    { name: 'answers a type that no header can carry', renderProblem: () => ({ body: '', contentType: 'a\r\nb: c' }) },
    { name: 'answers a type that is no text', renderProblem: () => ({ body: '', contentType: 1 }) },
    { name: 'answers an empty type', renderProblem: () => ({ body: '', contentType: '' }) },
    { name: 'answers a promise', renderProblem: async () => ({ body: 'busy' }) },
    { name: 'answers a promise that rejects', renderProblem: () => Promise.reject(new Error('boom')) },
  ])('that $name gives way to the default shape, with an event', async ({ renderProblem }) => {
    const { events, headers, body } = rendered(renderProblem)
    expect(headers['Content-Type']).toBe('application/problem+json')
    expect(JSON.parse(body)).toMatchObject({ code: 'in_flight', status: 409 })
    expect(events).toEqual([{ type: 'option_failed', option: 'renderProblem', error: expect.any(Error) }])
    await setImmediate()
    expect(unhandled).not.toHaveBeenCalled()
  })
})

const WRONG_VERDICTS: { readonly name: string; readonly verdict: () => unknown }[] = [
  {
    name: 'throws',
    verdict: () => {
      throw new Error('boom')
    },
  },
  { name: 'answers nothing', verdict: () => undefined },
  { name: 'answers null', verdict: () => null },
  { name: 'answers 0', verdict: () => 0 },
  { name: 'answers 1', verdict: () => 1 },
  { name: 'promises false', verdict: async () => false },
  { name: 'promises true', verdict: async () => true },
  { name: 'rejects', verdict: () => Promise.reject(new Error('boom')) },
]

describe('isSuccess', () => {
  test.each(WRONG_VERDICTS)('that $name gives way to the default, with an event', async ({ verdict }) => {
    const { run, events, types } = engineOnTrial({
      isSuccess: verdict as NonNullable<IdempotencyOptions<Request>['isSuccess']>,
    })
    await (await run()).settle(answer(500))
    await (await run()).settle(answer(200))
    expect(types()).toEqual(['claimed', 'option_failed', 'failed', 'claimed', 'option_failed', 'completed'])
    expect(events[1]).toEqual({ type: 'option_failed', option: 'isSuccess', error: expect.any(Error) })
    await setImmediate()
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('keepHeader', () => {
  const headers = [
    ['X-A', '1'],
    ['Date', 'now'],
  ] as const

  test.each(WRONG_VERDICTS)('that $name gives way to the default, with an event', async ({ verdict }) => {
    const { run, send, events } = engineOnTrial({ keepHeader: verdict as NonNullable<Options['keepHeader']> })
    expect(await (await run()).settle({ ...answer(), headers })).toEqual({ action: 'send' })
    const replay = await send()
    expect(replay.action === 'replay' && replay.answer.headers[0]).toEqual(['X-A', '1'])
    expect(replay.action === 'replay' && replay.answer.headers).toHaveLength(2)
    const failures = events.filter(({ type }) => type === 'option_failed')
    expect(failures).toEqual(
      headers.map(() => ({ type: 'option_failed', option: 'keepHeader', error: expect.any(Error) })),
    )
    await setImmediate()
    expect(unhandled).not.toHaveBeenCalled()
  })
})
