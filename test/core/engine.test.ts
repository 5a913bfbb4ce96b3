import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { failBefore } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const OTHER = { body: { amount: 999 } }

describe('a request', () => {
  test('with a new key runs, as attempt 1 with nothing before it', async () => {
    const { run, events } = engineOnTrial()
    const { context, maxAnswerBytes } = await run()
    const { key, scope, attempt, previousOutcome } = context
    expect({ key, scope, attempt, previousOutcome, maxAnswerBytes }).toEqual({
      key: 'order-1',
      scope: 'acme',
      attempt: 1,
      previousOutcome: 'none',
      maxAnswerBytes: 1_048_576,
    })
    expect(events).toEqual([
      { type: 'claimed', scope: 'acme', key: 'order-1', attempt: 1, previousOutcome: 'none', because: 'new' },
    ])
  })

  test('in flight is refused to its retry, and mismatched to another request', async () => {
    const { run, send, events } = engineOnTrial()
    await run()
    const again = await send()
    expect(outcomeOf(again)).toBe('in_flight')
    expect(again).toMatchObject({ problem: { status: 409, retryAfterSeconds: 1 } })
    expect(outcomeOf(await send(OTHER))).toBe('mismatched')
    expect(events.slice(1)).toEqual([
      { type: 'in_flight', scope: 'acme', key: 'order-1' },
      { type: 'mismatched', scope: 'acme', key: 'order-1' },
    ])
  })

  test('completed is replayed byte for byte, marked as a replay, and mismatched to another request', async () => {
    const { run, send, events } = engineOnTrial()
    const made = answer(201, 'ünïcode ☃')
    expect(await (await run()).settle(made)).toEqual({ action: 'send' })
    expect(await send()).toEqual({
      action: 'replay',
      answer: { ...made, headers: [...made.headers, ['Idempotent-Replayed', 'true']] },
    })
    expect(outcomeOf(await send(OTHER))).toBe('mismatched')
    expect(events.slice(1)).toEqual([
      { type: 'completed', scope: 'acme', key: 'order-1', attempt: 1, status: 201, answerKept: true },
      { type: 'replayed', scope: 'acme', key: 'order-1', attempt: 1 },
      { type: 'mismatched', scope: 'acme', key: 'order-1' },
    ])
  })

  test('completed without its answer is never run again', async () => {
    const { run, send, types, events } = engineOnTrial()
    await (await run()).settle({ ...answer(), body: null })
    expect(events[1]).toMatchObject({ type: 'completed', answerKept: false })
    expect(outcomeOf(await send())).toBe('answer_not_kept')
    expect(outcomeOf(await send(OTHER))).toBe('mismatched')
    expect(types().slice(2)).toEqual(['answer_not_kept', 'mismatched'])
  })

  test.each([
    { name: 'the same request', request: {} },
    { name: 'a corrected request', request: OTHER },
  ])('that failed lets $name run as the next attempt', async ({ request }) => {
    const { run, events } = engineOnTrial()
    expect(await (await run()).settle(answer(400))).toEqual({ action: 'send' })
    expect(events[1]).toEqual({
      type: 'failed',
      scope: 'acme',
      key: 'order-1',
      attempt: 1,
      uncertain: false,
      because: 'refused',
    })
    expect((await run(request)).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  })

  test('that failed after mayHaveEffect() leaves the outcome unknown, and the key bound', async () => {
    const { run, send, events } = engineOnTrial()
    const first = await run()
    first.context.mayHaveEffect()
    await first.settle(answer(422))
    expect(events[1]).toMatchObject({ type: 'failed', uncertain: true })
    expect(outcomeOf(await send(OTHER))).toBe('mismatched')
    const second = await run()
    expect(second.context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
    await second.settle(answer(500))
    expect(events.at(-1)).toMatchObject({ type: 'failed', attempt: 2, uncertain: true })
    expect((await run()).context).toMatchObject({ attempt: 3, previousOutcome: 'unknown' })
  })

  test('whose process died runs again after the lapse, and is told that the outcome is unknown', async () => {
    const { store, run, send } = engineOnTrial()
    await run()
    store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs - 1)
    expect(outcomeOf(await send())).toBe('in_flight')
    await vi.advanceTimersByTimeAsync(1)
    expect(outcomeOf(await send(OTHER))).toBe('mismatched')
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
  })

  test('is new again when the retention of its record has ended', async () => {
    const { run, send } = engineOnTrial()
    await (await run()).settle(answer())
    await vi.advanceTimersByTimeAsync(TIMES.retentionMs - 1)
    expect(outcomeOf(await send())).toBe('replay')
    await vi.advanceTimersByTimeAsync(1)
    expect((await run(OTHER)).context).toMatchObject({ attempt: 1, previousOutcome: 'none' })
  })

  test('is not concerned by the same key in another scope', async () => {
    const { run, send } = engineOnTrial()
    await (await run()).settle(answer(201, 'of acme'))
    const globex = await run({ scope: 'globex' })
    expect(globex.context).toMatchObject({ scope: 'globex', attempt: 1, previousOutcome: 'none' })
    await globex.settle(answer(201, 'of globex'))
    const replays = [await send(), await send({ scope: 'globex' })]
    expect(replays.map((one) => one.action === 'replay' && String(one.answer.body))).toEqual(['of acme', 'of globex'])
  })

  test('of fifty identical ones at once: one runs, the others are in flight', async () => {
    const { send } = engineOnTrial()
    const decisions = await Promise.all(Array.from({ length: 50 }, () => send()))
    expect(decisions.filter(({ action }) => action === 'execute')).toHaveLength(1)
    expect(decisions.filter((decision) => outcomeOf(decision) === 'in_flight')).toHaveLength(49)
  })

  test('under `unknownOutcome: "refuse"` does not run where an earlier attempt died or may have had its effect', async () => {
    const { store, run, send, types } = engineOnTrial({ unknownOutcome: 'refuse' })
    const failed = await run()
    failed.context.mayHaveEffect()
    await failed.settle(answer(422))
    expect(outcomeOf(await send())).toBe('outcome_unknown')
    await run({ key: 'order-2' })
    store.always('renew', failBefore())
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs)
    expect(outcomeOf(await send({ key: 'order-2' }))).toBe('outcome_unknown')
    expect(outcomeOf(await send({ key: 'order-2', ...OTHER }))).toBe('mismatched')
    expect(types().filter((type) => type === 'outcome_unknown')).toHaveLength(2)
  })

  test('under `unknownOutcome: "refuse"` runs again after a certain failure', async () => {
    const { run } = engineOnTrial({ unknownOutcome: 'refuse' })
    await (await run()).settle(answer(422))
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  })

  test('that is not covered is bypassed, and its store never asked', async () => {
    const { store, send, events } = engineOnTrial()
    expect(await send({ key: null })).toEqual({ action: 'bypass' })
    expect(await send({ method: 'GET' })).toEqual({ action: 'bypass' })
    expect(store.sent).toEqual([])
    expect(events).toEqual([])
  })

  test('that is refused as sent is told why, with an event, and its store never asked', async () => {
    const { store, send, events } = engineOnTrial({ required: true })
    expect(outcomeOf(await send({ key: '' }))).toBe('key_invalid')
    expect(outcomeOf(await send({ key: null }))).toBe('key_missing')
    expect(events).toEqual([
      { type: 'rejected', code: 'key_invalid' },
      { type: 'rejected', code: 'key_missing' },
    ])
    expect(store.sent).toEqual([])
  })
})
