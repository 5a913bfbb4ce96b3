import fc from 'fast-check'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test, vi } from 'vitest'
import { histories, noVisits, repliesOfMachine, repliesOfStore, type Visits } from '../support/histories.js'
import { BROKEN_STORES } from './broken-stores.js'

vi.setConfig({ testTimeout: 60_000 })

async function checkAgainstMachine(
  open: (now: () => number) => Store,
  numRuns: number,
  visits: Visits,
  endOnFailure = false,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(histories(), async (history) => {
      let now = 1
      const advance = (ms: number) => {
        now += ms
      }
      const replies = await repliesOfStore(
        history,
        open(() => now),
        advance,
      )
      // A clone has plain bytes: whether a store gives a Buffer or a Uint8Array makes no difference.
      expect(structuredClone(replies)).toEqual(structuredClone(repliesOfMachine(history, visits)))
    }),
    { numRuns, endOnFailure },
  )
}

describe('random histories of commands', () => {
  test('MemoryStore replies as the machine does, in more than 20,000 commands', async () => {
    const visits = noVisits()
    await checkAgainstMachine((now) => new MemoryStore({ now }), 1_000, visits)
    expect(visits.commands).toBeGreaterThanOrEqual(20_000)
    // A run that tried nothing shows nothing.
    for (const [what, times] of Object.entries(visits)) expect(times, what).toBeGreaterThanOrEqual(100)
  })

  // Those whose mistake is in the state machine, not in bytes, names or concurrency.
  const WRONG_STEPS = [
    'no fencing',
    'a lease never lapses',
    'the fingerprint is ignored',
    'release forgets the attempt',
    'a begin that is sent again is refused',
    "a completion after another's completion is accepted",
    'a failing takeover forgets the uncertainty',
    'a released token claims again',
    'retention is ignored',
    'failedMs is ignored',
  ]

  test.each(WRONG_STEPS)('a store where %s replies otherwise', async (breaks) => {
    const store = BROKEN_STORES.find((each) => each.breaks === breaks)
    // Nobody needs the shortest history: with an unlucky seed it takes a minute to find.
    const run = checkAgainstMachine((now) => (store as typeof store & object).open(now), 600, noVisits(), true)
    await expect(run).rejects.toThrow(/Property failed after \d+ tests\s*\n\{ seed: /)
  })
})
