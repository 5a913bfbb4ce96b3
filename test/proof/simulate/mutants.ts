import type { Mutant } from '../mutants/mutant.js'
import { engineMutants } from './engine-mutants.js'
import { machineMutants } from './machine-mutants.js'

/** Faults that the simulator finds. */
export const mutants: readonly Mutant[] = [...machineMutants, ...engineMutants]
