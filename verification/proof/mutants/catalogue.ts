import { mutants as chaos } from '../chaos/process-mutants.js'
import { mutants as commit } from '../commit/commit-mutants.js'
import { mutants as explore } from '../explore/interleaving-mutants.js'
import { mutants as fuzz } from '../fuzz/http-mutants.js'
import { mutants as model } from '../model/store-mutants.js'
import { mutants as races } from '../races/race-mutants.js'
import { engineMutants } from '../simulate/engine-mutants.js'
import { machineMutants } from '../simulate/machine-mutants.js'
import { mutants as soak } from '../soak/leak-mutants.js'
import type { Mutant } from './mutant.js'
import { stepsInPeace, stepsInTrouble } from './step-mutants.js'

const simulate = [
  ...machineMutants,
  ...engineMutants,
  ...[...stepsInPeace, ...stepsInTrouble].map((mutant): Mutant => ({ ...mutant, layer: 'simulate' })),
]

/** Every fault that is planted; each layer knows those that it finds. */
export const MUTANTS: readonly Mutant[] = [
  ...explore,
  ...simulate,
  ...model,
  ...fuzz,
  ...soak,
  ...chaos,
  ...races,
  ...commit,
]
