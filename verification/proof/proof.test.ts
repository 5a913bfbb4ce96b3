import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { thoroughly } from '../../test/support/thoroughness.js'
import { faultsOf } from './layer.js'
import { LAYERS, type LayerName } from './layers.js'
import { MUTANTS } from './mutants/catalogue.js'
import { isFound, tryMutant } from './mutants/trial.js'
import { runLayer } from './run.js'
import { buildTree, type Tree } from './tree.js'

/** In one process: these are a proof of seconds. */
const IN_ONE_PROCESS: readonly LayerName[] = ['explore', 'simulate', 'model']
const NAMES = thoroughly(IN_ONE_PROCESS, Object.keys(LAYERS) as LayerName[])
/** For each of them a library with a fault in it is built. */
const TRIED_ON_A_FAULT = thoroughly<readonly LayerName[]>(['simulate'], NAMES)

/** The short form of `npm run prove`. */
const SCALES: Readonly<Record<LayerName, number>> = {
  explore: 0.02,
  simulate: thoroughly(0.01, 0.02),
  model: thoroughly(0.01, 0.02),
  fuzz: 0.02,
  soak: 0.02,
  chaos: 0.05,
  races: 0.01,
  commit: 0.01,
}
/** The same choices in each run, so that what fails here fails for everybody; `npm run prove` makes others. */
const seed = 7
let tree: Tree

beforeAll(async () => {
  tree = await buildTree()
}, 60_000)
afterAll(() => tree.remove())

describe.each(NAMES)('%s', (layer) => {
  test('finds no violation', { timeout: 300_000 }, async () => {
    const report = await runLayer({ layer, scale: SCALES[layer], seed }, tree.root)
    expect(faultsOf(report).join('\n'), `seed ${seed}`).toBe('')
  })
})

/** The first of each layer, and of each database that it goes over, is found whatever the schedule. */
const FIRST_FAULTS = TRIED_ON_A_FAULT.flatMap((layer) => {
  const faults = MUTANTS.filter((each) => each.layer === layer)
  return [...new Map(faults.toReversed().map((fault) => [fault.on, fault])).values()]
})

describe.each(FIRST_FAULTS)('$layer', (mutant) => {
  test('finds a planted fault', { timeout: 300_000 }, async () => {
    const trial = await tryMutant(mutant, tree, 1, true)
    expect(isFound(trial), JSON.stringify(trial, null, 2)).toBe(true)
  })
})
