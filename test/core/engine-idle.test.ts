import { completeByHand, type Store } from 'once-per-key/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { engineOnTrial, runOf, TIMES } from '../support/engine-on-trial.js'
import { answerLate, failBefore, gated, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Trial = ReturnType<typeof engineOnTrial>

/** Whether `idle()`, asked now, has resolved. */
function idleOf({ engine }: Trial): () => Promise<boolean> {
  let idle = false
  void engine.idle().then(() => {
    idle = true
  })
  return async () => {
    await vi.advanceTimersByTimeAsync(0)
    return idle
  }
}

test('an engine that runs nothing is idle', async () => {
  const trial = engineOnTrial()
  expect(await idleOf(trial)()).toBe(true)
})

test.each([
  { name: 'completed', end: 'settle', status: 200 },
  { name: 'failed', end: 'settle', status: 500 },
  { name: 'failed without an answer', end: 'fail', status: 0 },
] as const)('idle waits for a run until it is $name', async ({ end, status }) => {
  const trial = engineOnTrial()
  const execution = await trial.run()
  const idle = idleOf(trial)
  expect(await idle()).toBe(false)
  if (end === 'settle') await execution.settle(answer(status))
  else await execution.fail()
  expect(await idle()).toBe(true)
})

test('idle waits for all of several runs, and for each asker', async () => {
  const trial = engineOnTrial()
  const runs = await Promise.all(['a', 'b', 'c'].map((key) => trial.run({ key })))
  const askers = [idleOf(trial), idleOf(trial)]
  for (const [i, execution] of runs.entries()) {
    for (const idle of askers) expect(await idle(), `before run ${i} ended`).toBe(false)
    await execution.settle(answer())
  }
  for (const idle of askers) expect(await idle()).toBe(true)
})

test('idle waits for a claim on its way, and for the run that it starts', async () => {
  const trial = engineOnTrial()
  const { fault, open } = gated()
  trial.store.next('begin', fault)
  const running = trial.run()
  const idle = idleOf(trial)
  expect(await idle()).toBe(false)
  open()
  const execution = await running
  expect(await idle()).toBe(false)
  await execution.fail()
  expect(await idle()).toBe(true)
})

test('idle waits for the release behind a given-up claim', async () => {
  const trial = engineOnTrial()
  const { fault, open } = gated()
  trial.store.next('begin', failBefore())
  trial.store.next('release', fault)
  await trial.send()
  const idle = idleOf(trial)
  expect(await idle()).toBe(false)
  open()
  expect(await idle()).toBe(true)
})

test('idle, asked while a claim is about to be given up, waits for its release', async () => {
  const trial = engineOnTrial()
  const { fault, open } = gated()
  trial.store.next('begin', hang)
  trial.store.next('release', fault)
  void trial.send()
  const idle = idleOf(trial)
  await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs)
  expect(await idle()).toBe(false)
  open()
  expect(await idle()).toBe(true)
})

test.each([
  { name: 'completion', command: 'complete', status: 200 },
  { name: 'release', command: 'release', status: 500 },
] as const)('idle waits for a pending $name', async ({ command, status }) => {
  const trial = engineOnTrial()
  trial.store.next(command, failBefore(), failBefore())
  const execution = await trial.run()
  await execution.settle(answer(status))
  const idle = idleOf(trial)
  expect(await idle()).toBe(false)
  await vi.advanceTimersByTimeAsync(299)
  expect(await idle()).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await idle()).toBe(true)
})

test('idle waits no longer than maxRunMs and a lease for a handler that never ends', async () => {
  const trial = engineOnTrial()
  await trial.run()
  const idle = idleOf(trial)
  await vi.advanceTimersByTimeAsync(TIMES.maxRunMs)
  expect(await idle()).toBe(false)
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs)
  expect(await idle()).toBe(true)
})

test('idle waits no longer than maxRunMs for a handler that completed its record by hand and never ends', async () => {
  const trial = engineOnTrial()
  const execution = await trial.run()
  await completeByHand(trial.store as Store, execution.context, { status: 201 }, () => {})
  const idle = idleOf(trial)
  await vi.advanceTimersByTimeAsync(TIMES.maxRunMs - 1)
  expect(await idle()).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await idle()).toBe(true)
})

test('idle waits for a handler whose lease was taken, and which still runs', async () => {
  const trial = engineOnTrial()
  trial.store.next('begin', answerLate(0))
  const running = trial.run()
  await vi.advanceTimersByTimeAsync(0)
  const execution = await running
  trial.store.always('renew', () => Promise.resolve({ ok: false, record: null } as never))
  await vi.advanceTimersByTimeAsync(2 * TIMES.leaseMs)
  expect(execution.context.signal.aborted).toBe(true)
  const idle = idleOf(trial)
  expect(await idle()).toBe(false)
  trial.store.next('complete', () => Promise.resolve({ ok: false, record: null } as never))
  await execution.settle(answer())
  expect(await idle()).toBe(true)
})

test('a run that ends when its time is long over counts once: idle still waits for another run', async () => {
  const trial = engineOnTrial()
  const late = await trial.run({ key: 'a' })
  await vi.advanceTimersByTimeAsync(TIMES.maxRunMs + TIMES.leaseMs)
  await trial.run({ key: 'b' })
  await late.settle(answer())
  expect(await idleOf(trial)()).toBe(false)
})

test('an end that is told twice counts once: idle still waits for another run', async () => {
  const trial = engineOnTrial()
  const [one] = [runOf(await trial.send({ key: 'a' })), runOf(await trial.send({ key: 'b' }))]
  await one.settle(answer())
  await one.settle(answer())
  await one.fail()
  expect(await idleOf(trial)()).toBe(false)
})
