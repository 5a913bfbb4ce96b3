export type {
  Around,
  Fenced,
  Free,
  Looked,
  Looking,
  Store,
  Unclaimed,
  Withheld,
} from '../../src/core/index.js'
export * from '../every-store.js'
export { SealedStoreError, type SealedStoreErrorCode } from './errors.js'
export { newSealingKey, sealingKeyId } from './keys.js'
export type { SealedOptions } from './options.js'
export { sealed } from './sealed.js'
