import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'
import { failBefore } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

// An owner that is cut off from the store sent its success, and a later attempt another one.

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe.each([
  { options: {}, terms: undefined, sent: 'send' },
  { options: {}, terms: { confirmed: true }, sent: 'store_unavailable' },
  { options: { unconfirmedSuccess: 'withhold' }, terms: undefined, sent: 'store_unavailable' },
] as const)('a success that is not confirmed, with $options and $terms', ({ options, terms, sent }) => {
  test(`is answered by ${sent}, and stored once the store is back`, async () => {
    const { run, send, store, types } = engineOnTrial(options)
    const execution = await run()
    store.next('complete', failBefore())
    expect(outcomeOf(await execution.settle(answer(), terms))).toBe(sent)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(types().filter((type) => type !== 'store_failed')).toEqual(['claimed', 'completion_pending', 'completed'])
    expect(outcomeOf(await send())).toBe('replay')
  })
})

test('a run that no claim protects sends its success: each retry would run again', async () => {
  const { run, store } = engineOnTrial({ unconfirmedSuccess: 'withhold', storeFailure: 'runUnprotected' })
  store.next('begin', failBefore())
  const execution = await run()
  store.next('complete', failBefore())
  expect(outcomeOf(await execution.settle(answer()))).toBe('send')
})

test('a failure is sent although its release is not confirmed', async () => {
  const { run, store } = engineOnTrial({ unconfirmedSuccess: 'withhold' })
  store.next('release', failBefore())
  expect(outcomeOf(await (await run()).settle(answer(500)))).toBe('send')
})

test('a record with an unknown outcome is kept for `unknownRetentionMs`, a completed one for `retentionMs`', async () => {
  const { run, send, store } = engineOnTrial({ retentionMs: 24 * 3_600_000, unknownRetentionMs: 3_600_000 })
  await (await run()).settle(answer(500))
  await (await run()).settle(answer())
  expect(store.sent.map(({ command, terms }) => [command, terms.retentionMs])).toEqual([
    ['begin', 3_600_000],
    ['release', 3_600_000],
    ['begin', 3_600_000],
    ['complete', 24 * 3_600_000],
  ])
  expect(outcomeOf(await send())).toBe('replay')
})
