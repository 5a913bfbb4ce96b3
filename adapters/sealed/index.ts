export { SealedStoreError, type SealedStoreErrorCode } from './errors.js'
export { newSealingKey, sealingKeyId } from './keys.js'
export type { SealedOptions } from './options.js'
export { sealed } from './sealed.js'
