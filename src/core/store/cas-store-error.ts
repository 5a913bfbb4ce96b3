import { describeKind, recognizeAcrossCopies } from '../errors.js'
import { StoreError } from './store.js'

/**
 * What went wrong between a `casStore` and its database. A closed set: a new code is a minor release. What `read`, `swap`, `remove` and
 * `list` throw themselves is passed on unchanged.
 *
 * - `contended`: other commands changed the record each time that this command tried to. This command changed nothing.
 * - `record_unreadable`: a record is damaged, or a later version of the library encoded it. It was left unchanged.
 * - `result_invalid`: an option function returned a value of another type than its docstring says. If it was `swap` or `remove`, it is
 *   unknown whether the row was changed. Otherwise nothing was changed.
 */
export type CasStoreErrorCode = 'contended' | 'record_unreadable' | 'result_invalid'

/** Check `code`. The message contains no key and nothing of the record. */
export class CasStoreError extends StoreError<CasStoreErrorCode> {
  override readonly name = 'CasStoreError'
}
recognizeAcrossCopies(CasStoreError, 'CasStoreError')

export function recordUnreadableError(because: string): CasStoreError {
  return new CasStoreError('record_unreadable', `The record cannot be read, and was left unchanged: ${because}.`)
}

export function resultInvalidError(of: string, expected: string, seen: unknown): CasStoreError {
  return new CasStoreError(
    'result_invalid',
    `\`${of}\` of casStore() returned an invalid result: expected ${expected}; seen: ${describeKind(seen)}.`,
  )
}

export function contendedError(turns: number): CasStoreError {
  return new CasStoreError(
    'contended',
    `The record was not written, because \`swap\` or \`remove\` returned false ${turns} times in a row. Either many commands change this ` +
      'record at the same time, or the version that `read` returns is not the one that `swap` compares: `read` must see the last write.',
  )
}
