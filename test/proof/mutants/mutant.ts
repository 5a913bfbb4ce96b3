import type { Check } from '../checks.js'
import type { LayerName } from '../layers.js'

/** A fault to plant into the sources, and who must find it. */
export interface Mutant {
  /** What is wrong with it, in a few words: 'a completion is not fenced'. */
  readonly name: string
  /** The source file, from the project's root. */
  readonly file: string
  /** Text that stands in the file exactly once. */
  readonly find: string
  readonly replace: string
  readonly layer: LayerName
  /** The check that must fail. */
  readonly check: Check
  /** How much of the layer finds it, where that is not what usually does. */
  readonly scale?: number
}
