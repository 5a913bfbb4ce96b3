import type { Check } from '../checks.js'
import type { LayerName } from '../layers.js'

/** A fault to plant into the sources, and who must find it. */
export interface Mutant {
  /** What is wrong with it, in a few words: 'a completion is not fenced'. */
  readonly name: string
  /** Text that stands in the sources exactly once: in whichever file, and however it is broken into lines. */
  readonly find: string
  readonly replace: string
  readonly layer: LayerName
  /** The check that must fail. */
  readonly check: Check
  /** How much of the layer finds it, where that is not what usually does. */
  readonly scale?: number
  /** Of the databases that the layer goes over, the only one that is tried. */
  readonly on?: string
}
