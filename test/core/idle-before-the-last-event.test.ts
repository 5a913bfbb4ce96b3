import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { engineOnTrial, TIMES } from '../support/engine-on-trial.js'
import type { Command, Fault } from '../support/failing-store.js'
import { answerLate, failBefore, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

// `idle()` resolved before a run's last events were told: a process that ends behind it, as its guide says, never heard that a
// completion was given up.

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const { leaseMs, maxRunMs, storeTimeoutMs } = TIMES
const LATE = answerLate(1.5 * storeTimeoutMs)

const ENDS: readonly {
  readonly name: string
  readonly faults: Partial<Record<Command, Fault>>
  readonly status: number
  readonly afterMs?: number
  readonly last: string
}[] = [
  { name: 'a completion that fails', faults: { complete: failBefore() }, status: 201, last: 'completion_given_up' },
  { name: 'a completion that hangs', faults: { complete: hang }, status: 201, last: 'completion_given_up' },
  {
    name: 'a completion, where nothing is answered and the lease is lost',
    faults: { complete: hang, renew: hang },
    status: 201,
    last: 'completion_given_up',
  },
  {
    name: 'a completion that begins when its time is nearly over',
    faults: { complete: hang, renew: hang },
    status: 201,
    afterMs: maxRunMs - storeTimeoutMs / 2,
    last: 'completion_given_up',
  },
  { name: 'a completion that is confirmed late', faults: { complete: LATE }, status: 201, last: 'completed' },
  { name: 'a release that fails', faults: { release: failBefore() }, status: 500, last: 'store_failed' },
  {
    name: 'a release, where nothing is answered and the lease is lost',
    faults: { release: hang, renew: hang },
    status: 500,
    last: 'lease_lost',
  },
  { name: 'a release that is confirmed late', faults: { release: LATE }, status: 500, last: 'failed' },
  {
    name: 'a run whose renewal is on its way',
    faults: { renew: hang },
    status: 201,
    afterMs: leaseMs / 3,
    last: 'store_failed',
  },
]

test.each(ENDS)('idle() resolves behind the last event of $name', async ({ faults, status, afterMs = 0, last }) => {
  const { store, engine, run, types } = engineOnTrial()
  const execution = await run()
  for (const [command, fault] of Object.entries(faults)) store.always(command as Command, fault)
  await vi.advanceTimersByTimeAsync(afterMs)
  void execution.settle(answer(status))
  let heard: string[] = []
  void engine.idle().then(() => {
    heard = types()
  })
  await vi.advanceTimersByTimeAsync(maxRunMs + leaseMs)
  expect(heard.at(-1)).toBe(last)
  expect(types()).toEqual(heard)
})
