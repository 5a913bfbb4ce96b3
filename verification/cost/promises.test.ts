import { expect, test, vi } from 'vitest'
import { runNode } from '../../test/support/run-node.js'
import { built } from './built.js'

const REQUESTS = 500

vi.setConfig({ testTimeout: 120_000 })

const program = await built('requests')

/** What so many first requests make: exact, however busy the machine is. */
async function madeBy(variant: string): Promise<{ readonly promises: number; readonly timers: number }> {
  const { stdout, stderr, exitCode } = await runNode(program, variant, `${REQUESTS}`, 'counts')
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

const bare = await madeBy('bare')

test.each([
  ['with a store that replies at once', 'at-once', 0],
  ['with a store that tells its replies', 'by-send', 0],
  // Of two commands: the promise of each is the store's, and another one hears it.
  ['with a store of promises', 'by-promises', 2 * 2],
])('a protected request adds no promise %s, but what the store’s promises need', async (_store, variant, expected) => {
  const { promises } = await madeBy(variant)
  expect((promises - bare.promises) / REQUESTS).toBe(expected)
})

test.each(['at-once', 'by-send', 'by-promises'])('the timers of %s do not grow with its requests', async (variant) => {
  const { timers } = await madeBy(variant)
  expect(timers - bare.timers).toBeLessThan(10)
})
