import { LAYERS, type LayerName } from './layers.js'
import { MUTANTS } from './mutants/catalogue.js'
import type { Mutant } from './mutants/mutant.js'

/** What a run of the proof does. */
export interface Chosen {
  readonly layers: readonly LayerName[]
  readonly mutants: readonly Mutant[]
}

/** @throws Error for a name that is none: a run that did nothing would look as if all were well. */
export function chosenBy(asked: readonly string[]): Chosen {
  const names = Object.keys(LAYERS) as LayerName[]
  const known = [...names, 'mutants', ...names.map((layer) => `mutants:${layer}`)]
  const unknown = asked.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new Error(`There is no ${unknown.join(', ')}: give some of ${known.join(', ')}, or nothing for everything.`)
  }
  const all = asked.length === 0
  return {
    layers: names.filter((name) => all || asked.includes(name)),
    mutants: MUTANTS.filter(({ layer }) => all || asked.includes('mutants') || asked.includes(`mutants:${layer}`)),
  }
}
