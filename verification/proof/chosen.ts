import { LAYERS, type LayerName } from './layers.js'
import { MUTANTS } from './mutants/catalogue.js'
import type { Mutant } from './mutants/mutant.js'

/** What a run of the proof does. */
export interface Chosen {
  readonly layers: readonly LayerName[]
  readonly mutants: readonly Mutant[]
}

/** Before words from the name of a planted fault: those faults alone. */
const FAULT = 'fault:'
/** All layers, without the planted faults. */
const LAYERS_ALONE = 'layers'

/** @throws Error for a name that is none: a run that did nothing would look as if all were well. */
export function chosenBy(asked: readonly string[]): Chosen {
  const names = Object.keys(LAYERS) as LayerName[]
  const known = [...names, LAYERS_ALONE, 'mutants', ...names.map((layer) => `mutants:${layer}`)]
  const faults = asked.filter((name) => name.startsWith(FAULT)).map((name) => name.slice(FAULT.length))
  const isNamed = ({ name }: Mutant) => faults.some((words) => name.includes(words))
  const unknown = asked.filter((name) => {
    const words = name.slice(FAULT.length)
    return !known.includes(name) && !(name.startsWith(FAULT) && MUTANTS.some((mutant) => mutant.name.includes(words)))
  })
  if (unknown.length > 0) {
    throw new Error(
      `There is no ${unknown.join(', ')}: give some of ${known.join(', ')}, ${FAULT}WORDS of a planted fault, or nothing for everything.`,
    )
  }
  const all = asked.length === 0
  return {
    layers: names.filter((name) => all || asked.includes(LAYERS_ALONE) || asked.includes(name)),
    mutants: MUTANTS.filter(
      (mutant) => all || asked.includes('mutants') || asked.includes(`mutants:${mutant.layer}`) || isNamed(mutant),
    ),
  }
}
