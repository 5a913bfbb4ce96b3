import type { Check } from '../checks.js'
import type { LayerName } from '../layers.js'
import { runLayer } from '../run.js'
import { plantedTree, type Tree } from '../tree.js'
import type { Mutant } from './mutant.js'

/** What became of a planted fault. */
export interface Trial {
  readonly mutant: Mutant
  /** The checks that failed, in their order; none: it went unseen. */
  readonly foundBy: readonly Check[]
  /** Why its layer gave no report. */
  readonly error?: string
}

/** As little of each layer as finds its faults. */
const SCALES: Readonly<Record<LayerName, number>> = {
  explore: 0.05,
  simulate: 0.02,
  model: 0.05,
  fuzz: 0.05,
  soak: 0.02,
  chaos: 0.05,
  races: 0.01,
  commit: 0.02,
}

/** `once`: it is enough that the check that it was planted for finds it; who else would, is not asked. */
export async function tryMutant(mutant: Mutant, pattern: Tree, seed: number, once = false): Promise<Trial> {
  let tree: Tree | undefined
  try {
    tree = await plantedTree(mutant, pattern)
    const { violations } = await runLayer(
      { ...mutant, scale: mutant.scale ?? SCALES[mutant.layer], seed, until: once ? mutant.check : undefined },
      tree.root,
    )
    return { mutant, foundBy: violations.map(({ check }) => check).sort(byNumber) }
  } catch (error) {
    return { mutant, foundBy: [], error: String(error) }
  } finally {
    await tree?.remove()
  }
}

/** Found, and by the check that it was planted for. */
export function isFound({ mutant, foundBy }: Trial): boolean {
  return foundBy.includes(mutant.check)
}

function byNumber(a: Check, b: Check): number {
  return a[0] === b[0] ? Number(a.slice(1)) - Number(b.slice(1)) : a < b ? 1 : -1
}
