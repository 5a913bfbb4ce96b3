import type { Answer } from '../record/record.js'

/**
 * Why an operation is not run: because of the existing record, or because the store does not reply. `transaction_missing`: it ran, with
 * `effects: 'in-transaction'`, and its success had no transaction.
 */
export type RefusalCode =
  | 'in_flight'
  | 'mismatched'
  | 'answer_not_kept'
  | 'outcome_unknown'
  | 'key_expired'
  | 'store_unavailable'
  | 'transaction_missing'

/** The operation is not run. */
export interface Refused {
  readonly action: 'refuse'
  readonly code: RefusalCode
  /** After this time the client may retry; `null`: waiting does not help. */
  readonly retryAfterMs: number | null
  /** The operation may have been carried out: it ran, but its end could not be stored. */
  readonly mayHaveRun: boolean
}

/** An earlier attempt's answer, from its record. */
export interface Replayed {
  readonly action: 'replay'
  readonly answer: Answer
  /** It is the answer of this same run, which completed its record by hand, inside a transaction. */
  readonly isOwn?: true
}

/** What to send after a run has ended: its own answer, or what the record says instead. */
export type RunEnd = { readonly action: 'send' } | Replayed | Refused

export const SEND: RunEnd = Object.freeze({ action: 'send' })
