import { runner } from 'once-per-key/run'
import { expect, test } from 'vitest'
import { mulberry32 } from '../../verification/proof/mulberry32.js'
import { play } from './plays.js'
import { plantedRunner, RUN_MUTANTS } from './run-mutants.js'

const SEED = 20_26
const PLAYS = 120

/** The first fault in so many plays; and what the plays have tried. */
async function faultIn(make: typeof runner): Promise<{ fault: string | null; tried: Record<string, number> }> {
  const random = mulberry32(SEED)
  const tried: Record<string, number> = {}
  for (let i = 0; i < PLAYS; i++) {
    const { fault, tried: more } = await play(make, random)
    for (const [kind, times] of Object.entries(more)) tried[kind] = (tried[kind] ?? 0) + times
    if (fault !== null) return { fault, tried }
  }
  return { fault: null, tried }
}

test(`in ${PLAYS} random plays of three runners each call gets what the record says`, async () => {
  const { fault, tried } = await faultIn(runner)
  expect(fault).toBeNull()
  const kinds = ['answer_not_kept', 'in_flight', 'mismatched', 'outcome_unknown', 'result', 'thrown']
  const runs = ['held', 'result', 'thrown'].flatMap((kind) =>
    ['none', 'failed', 'unknown'].map((told) => `${kind}, told ${told}`),
  )
  for (const kind of [...kinds, ...runs]) expect([kind, tried[kind] ?? 0]).toEqual([kind, expect.toSatisfy(isMany)])
})

test('a runner that was compiled as the mutants are, without a fault, passes the plays', async () => {
  expect((await faultIn(plantedRunner())).fault).toBeNull()
})

test.each(RUN_MUTANTS)('the plays find the fault that $name', async (mutant) => {
  expect((await faultIn(plantedRunner(mutant))).fault).not.toBeNull()
})

function isMany(times: number): boolean {
  return times >= 10
}
