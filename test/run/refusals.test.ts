import { CertainFailure } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { type IdempotencyContext, RefusedError } from 'once-per-key/run'
import { describe, expect, test } from 'vitest'
import { TIMES } from '../support/engine-on-trial.js'
import { failingStore } from '../support/failing-store.js'
import { failBefore } from '../support/faults.js'
import { gate } from '../support/gate.js'
import { mustNotRun, OPERATION, rejection, runnerOnTrial } from './runner-on-trial.js'

describe('a RefusedError says why an operation was not run:', () => {
  test('another input under the key', async () => {
    const { once, types } = runnerOnTrial()
    await once(OPERATION, async () => 1)
    const error = await rejection(once({ ...OPERATION, input: { amount: 101 } }, mustNotRun))
    expect(error).toBeInstanceOf(RefusedError)
    expect(error).toMatchObject({ name: 'RefusedError', code: 'mismatched', retryAfterMs: null })
    expect(types().at(-1)).toBe('mismatched')
  })

  test('a live owner, and when to come back', async () => {
    const { once } = runnerOnTrial()
    const { opened, open } = gate()
    const first = once(OPERATION, () => opened)
    expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({
      name: 'RefusedError',
      code: 'in_flight',
      retryAfterMs: 1_000,
    })
    open()
    await first
  })

  test('an unknown outcome, under `refuse`', async () => {
    const { once } = runnerOnTrial({ unknownOutcome: 'refuse' })
    await rejection(once(OPERATION, () => Promise.reject(new Error('timed out'))))
    expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({
      name: 'RefusedError',
      code: 'outcome_unknown',
      retryAfterMs: null,
    })
  })

  test('a store that fails', async () => {
    const store = failingStore()
    const { once } = runnerOnTrial({}, store)
    store.next('begin', failBefore())
    expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({
      name: 'RefusedError',
      code: 'store_unavailable',
      retryAfterMs: 1_000,
      message: expect.stringContaining('nothing ran'),
    })
    await once.idle()
  })

  test('a success that could not be stored, where it is to be withheld', async () => {
    const store = failingStore()
    const { once } = runnerOnTrial({ unconfirmedSuccess: 'withhold' }, store)
    store.next('complete', failBefore())
    expect(await rejection(once(OPERATION, async () => 1))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('may have had its effect'),
    })
    await once.idle()
    expect(await once(OPERATION, mustNotRun)).toBe(1)
  })
})

test('a success that the store did not confirm is its caller’s all the same', async () => {
  const store = failingStore()
  const { once, types } = runnerOnTrial({}, store)
  store.next('complete', failBefore())
  expect(await once(OPERATION, async () => ({ id: 1 }))).toEqual({ id: 1 })
  await once.idle()
  expect(types()).toEqual(['claimed', 'store_failed', 'completion_pending', 'completed'])
})

test('a function may run without the store’s word, where the options say so', async () => {
  const store = failingStore()
  const { once, types } = runnerOnTrial({ storeFailure: 'runUnprotected' }, store)
  store.next('begin', failBefore())
  expect(await once(OPERATION, async ({ attempt }) => attempt)).toBe(0)
  expect(types()).toContain('unprotected')
  await once.idle()
})

test('a step of such a run is told that its outcome is unknown: an earlier attempt may have begun it', async () => {
  const inner = new MemoryStore()
  const store = Object.assign(failingStore(inner), { step: inner.step.bind(inner) })
  const { once } = runnerOnTrial({ storeFailure: 'runUnprotected' }, store)
  const charge = ({ step }: IdempotencyContext) => step('charge', ({ previousOutcome }) => previousOutcome)
  const dies = (context: IdempotencyContext) => charge(context).then(() => Promise.reject(new Error('died')))
  await rejection(once(OPERATION, dies))
  store.next('begin', failBefore())
  expect(await once(OPERATION, charge)).toBe('unknown')
  await once.idle()
})

describe('what the function throws', () => {
  test('is rethrown as it is, and leaves the outcome unknown', async () => {
    const { once, events } = runnerOnTrial()
    const error = new Error('timed out')
    expect(await rejection(once(OPERATION, () => Promise.reject(error)))).toBe(error)
    expect(events.at(-1)).toMatchObject({ type: 'failed', uncertain: true, because: 'no_answer' })
    expect(await once(OPERATION, async ({ attempt, previousOutcome }) => ({ attempt, previousOutcome }))).toEqual({
      attempt: 2,
      previousOutcome: 'unknown',
    })
  })

  test('at once counts as well', async () => {
    const { once } = runnerOnTrial()
    const error = new Error('at once')
    const work = (): string => {
      throw error
    }
    expect(await rejection(once(OPERATION, work))).toBe(error)
    expect(await once.inspect(OPERATION)).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('frees the key where it is a CertainFailure', async () => {
    const { once, events } = runnerOnTrial()
    const error = new CertainFailure('declined')
    expect(await rejection(once(OPERATION, () => Promise.reject(error)))).toBe(error)
    expect(events.at(-1)).toMatchObject({ type: 'failed', uncertain: false, because: 'certain_failure' })
    // A corrected input may follow under the same key.
    expect(await once({ ...OPERATION, input: 2 }, async ({ previousOutcome }) => previousOutcome)).toBe('failed')
  })

  test('frees the key where isCertainFailure says so', async () => {
    const refused = Object.assign(new Error('no'), { status: 422 })
    const seen: unknown[] = []
    const isCertainFailure = (error: unknown) => {
      seen.push(error)
      return error === refused
    }
    const { once, events } = runnerOnTrial({ isCertainFailure })
    await rejection(once(OPERATION, () => Promise.reject(refused)))
    expect(seen).toEqual([refused])
    expect(events.at(-1)).toMatchObject({ type: 'failed', uncertain: false, because: 'judged_certain' })
  })

  test('does not behind mayHaveEffect(), whatever is said of it', async () => {
    const asked: unknown[] = []
    const { once, events } = runnerOnTrial({ isCertainFailure: (error) => asked.push(error) > 0 })
    const fail = (error: Error) =>
      rejection(
        once(OPERATION, ({ mayHaveEffect }): string => {
          mayHaveEffect()
          throw error
        }),
      )
    await fail(new Error('judged'))
    expect(events.at(-1)).toMatchObject({ type: 'failed', uncertain: true, because: 'may_have_effect' })
    await fail(new CertainFailure('certain'))
    expect(events.at(-1)).toMatchObject({ type: 'failed', uncertain: true, because: 'earlier_attempt' })
    expect(asked).toEqual([])
  })

  test.each([
    ['throws', () => Promise.reject.call(null)],
    ['returns a promise', async () => true],
    ['returns nothing', () => undefined],
  ])('leaves the outcome unknown where isCertainFailure %s, with an event', async (_name, isCertainFailure) => {
    const { once, types } = runnerOnTrial({ isCertainFailure: isCertainFailure as never })
    const error = new Error('the function’s')
    expect(await rejection(once(OPERATION, () => Promise.reject(error)))).toBe(error)
    expect(types()).toEqual(['claimed', 'option_failed', 'failed'])
    expect(await once.inspect(OPERATION)).toMatchObject({ uncertain: true })
  })

  test('is certain where effects are declared, and none was', async () => {
    const { once, events } = runnerOnTrial({ effects: 'declared' })
    await rejection(once(OPERATION, () => Promise.reject(new Error('early'))))
    expect(events.at(-1)).toMatchObject({ type: 'failed', uncertain: false, because: 'declared' })
  })
})

test('a run that lost its key gives its caller what the record says', async () => {
  const { once, pass, types } = runnerOnTrial()
  const { opened, open } = gate()
  const stalled = once(OPERATION, async () => {
    await opened
    return 'mine'
  })
  pass(TIMES.leaseMs)
  expect(await once(OPERATION, async ({ previousOutcome }) => previousOutcome)).toBe('unknown')
  open()
  expect(await stalled).toBe('unknown')
  expect(types()).toContain('lease_lost')
})

test('a run that lost its key to one that still runs is refused, and says that it has run', async () => {
  const { once, pass } = runnerOnTrial()
  const [stall, other] = [gate(), gate()]
  const stalled = once(OPERATION, () => stall.opened)
  pass(TIMES.leaseMs)
  const second = once(OPERATION, () => other.opened)
  stall.open()
  expect(await rejection(stalled)).toMatchObject({
    code: 'in_flight',
    message: expect.stringContaining('The function has run'),
  })
  other.open()
  await second
})
