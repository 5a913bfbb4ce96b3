import { mutants as chaos } from '../chaos/mutants.js'
import { mutants as explore } from '../explore/mutants.js'
import { mutants as fuzz } from '../fuzz/mutants.js'
import { mutants as model } from '../model/mutants.js'
import { mutants as simulate } from '../simulate/mutants.js'
import { mutants as soak } from '../soak/mutants.js'
import type { Mutant } from './mutant.js'

/** Every fault that is planted; each layer knows those that it finds. */
export const MUTANTS: readonly Mutant[] = [...explore, ...simulate, ...model, ...fuzz, ...soak, ...chaos]
