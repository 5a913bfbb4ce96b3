import { recognizeAcrossCopies, StoreError } from '../../src/core/index.js'

/**
 * Why a stored answer was not opened. A closed set: a new code is a minor release. The record was left unchanged, and
 * the command counts as a store failure: nothing is replayed, and nothing runs.
 *
 * - `seal_key_missing`: it is sealed with a key that is not among `keys`.
 * - `seal_broken`: after it was sealed it was changed, or moved from another record.
 * - `seal_format_unknown`: it was sealed by a later version of the library.
 * - `answer_unsealed`: it is not sealed.
 */
export type SealedStoreErrorCode = 'seal_key_missing' | 'seal_broken' | 'seal_format_unknown' | 'answer_unsealed'

/** Check `code`. The message contains no key (neither of a record nor of a seal) and nothing of the answer. */
export class SealedStoreError extends StoreError<SealedStoreErrorCode> {
  override readonly name = 'SealedStoreError'
}
recognizeAcrossCopies(SealedStoreError, 'SealedStoreError')
