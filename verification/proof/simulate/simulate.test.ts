import { afterAll, beforeAll, expect, test } from 'vitest'
import { Findings } from '../layer.js'
import { runWorld } from './run-world.js'
import { digestOf } from './story.js'
import { emptyTally } from './tally.js'
import { installVirtualTime } from './virtual-time.js'

let restore: () => void
beforeAll(() => {
  restore = installVirtualTime()
})
afterAll(() => restore())

async function live(seed: number, number: number) {
  const findings = new Findings()
  const { history, steps } = await runWorld(seed, number, findings, emptyTally())
  return { digest: digestOf(history), steps, violations: findings.violations }
}

test.each([0, 1, 2, 3])('the same seed gives the same history, step by step: world %i', async (number) => {
  const lived = await live(7, number)
  expect(lived.steps).toBeGreaterThan(100)
  expect(await live(7, number)).toEqual(lived)
  expect(lived.violations).toEqual([])
})

test('another seed, and another number, give another history', async () => {
  const digests = new Set<string>()
  for (const [seed, number] of [
    [7, 0],
    [8, 0],
    [7, 1],
  ] as const) {
    digests.add((await live(seed, number)).digest)
  }
  expect(digests.size).toBe(3)
})

test.each([
  [370876085, 91],
  [388574584, 2923],
  [388574584, 7073],
])(
  'copies of a command that are lost in silence leave no key in flight, and no instance busy: seed %i, world %i',
  async (seed, world) => {
    expect((await live(seed, world)).violations).toEqual([])
  },
)

test('a completion that was confirmed is not expected again where the store lost it, and a renewal that was on its way restored the claim', async () => {
  expect((await live(8675309, 7414)).violations).toEqual([])
})

test('no step is recorded after one whose result was given up, because the time of the run was over', async () => {
  expect((await live(544309432, 61)).violations).toEqual([])
})
