export type {
  ActingContext,
  AllowEmpty,
  AsResult,
  Fenced,
  Free,
  GivenAnswer,
  GivenByHand,
  JsonOf,
  Looked,
  Looking,
  StepOptions,
  Unclaimed,
  Withheld,
} from '../../src/core/index.js'
export * from '../every-store.js'
