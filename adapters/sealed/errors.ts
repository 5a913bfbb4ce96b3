/**
 * Why a stored answer was not opened. Closed: a new one is a minor release. The record was left as it is, and to whoever sent
 * the command the store has failed: nothing is replayed, and nothing runs.
 *
 * - `seal_key_missing`: it is sealed with a key that is not among `keys`.
 * - `seal_broken`: it was changed, or moved from another record, since it was sealed.
 * - `seal_format_unknown`: it was sealed by a later version of the library.
 * - `answer_unsealed`: it is not sealed at all.
 */
export type SealedStoreErrorCode = 'seal_key_missing' | 'seal_broken' | 'seal_format_unknown' | 'answer_unsealed'

/** Decide by `code`. Its message holds no key, neither of a record nor of a seal, and nothing of the answer. */
export class SealedStoreError extends Error {
  override readonly name = 'SealedStoreError'
  readonly code: SealedStoreErrorCode

  constructor(code: SealedStoreErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
