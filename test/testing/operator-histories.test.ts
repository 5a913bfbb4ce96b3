import fc from 'fast-check'
import { machine, type Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test, vi } from 'vitest'
import { mapStore } from '../support/map-store.js'
import {
  noOperatorVisits,
  type OperatorVisits,
  operatedHistories,
  operatedRepliesOfMachine,
  operatedRepliesOfStore,
} from '../support/operator-histories.js'

vi.setConfig({ testTimeout: 60_000 })

async function checkAgainstMachine(
  open: (now: () => number) => Store,
  numRuns: number,
  visits: OperatorVisits,
  endOnFailure = false,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(operatedHistories(), async (history) => {
      let now = 1
      const advance = (ms: number) => {
        now += ms
      }
      const store = open(() => now)
      const replies = await operatedRepliesOfStore(history, store, advance)
      expect(structuredClone(replies)).toEqual(structuredClone(operatedRepliesOfMachine(history, visits)))
    }),
    { numRuns, endOnFailure },
  )
}

test('with operators in between, MemoryStore replies as the machine does, in more than 20,000 commands', async () => {
  const visits = noOperatorVisits()
  await checkAgainstMachine((now) => new MemoryStore({ now }), 1_000, visits)
  expect(visits.commands).toBeGreaterThanOrEqual(20_000)
  // A run that tried nothing shows nothing.
  for (const [what, times] of Object.entries(visits)) expect(times, what).toBeGreaterThanOrEqual(50)
})

test.each<[string, Partial<typeof machine>]>([
  ['counts a resolution as an attempt', { resolve: (record, resolution, now) => withAttempt(record, resolution, now) }],
  [
    'takes what was said of one attempt for any',
    { resolve: (record, said, now) => machine.resolve(record, { ...said, attempt: record?.attempt ?? 0 }, now) },
  ],
  [
    'resolves a live lease',
    {
      resolve: (record, said, now) =>
        machine.resolve(record?.state === 'in-flight' ? { ...record, leaseUntil: now } : record, said, now),
    },
  ],
  [
    'forgets what another attempt left',
    {
      forget: (record, seen, now) => machine.forget(record, { ...seen, attempt: record?.attempt ?? 0 }, now),
    },
  ],
  [
    'removes where only the answer is to be forgotten',
    { forget: (record, seen, now) => machine.forget(record, { ...seen, removes: true }, now) },
  ],
  ['forgets nothing', { forget: (record) => ({ record, reply: { ok: true } }) }],
])('a store that %s replies otherwise', async (_name, steps) => {
  // Nobody needs the shortest history: with an unlucky seed it takes a minute to find.
  const run = checkAgainstMachine((now) => mapStore(now, { ...machine, ...steps }), 600, noOperatorVisits(), true)
  await expect(run).rejects.toThrow(/Property failed after \d+ tests\s*\n\{ seed: /)
})

function withAttempt(...[record, resolution, now]: Parameters<typeof machine.resolve>) {
  const step = machine.resolve(record, resolution, now)
  const attempt = (record?.attempt ?? 0) + 1
  return step.record === record ? step : { ...step, record: step.record && { ...step.record, attempt } }
}
