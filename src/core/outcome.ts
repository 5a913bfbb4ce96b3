import type { Answer } from './record.js'

/** Why an operation is not run: in the words of the record that stands, or of a store that does not answer. */
export type RefusalCode = 'in_flight' | 'mismatched' | 'answer_not_kept' | 'outcome_unknown' | 'store_unavailable'

/** The operation is not run. */
export interface Refused {
  readonly action: 'refuse'
  readonly code: RefusalCode
  /** After so many milliseconds the same may be asked again; `null`: waiting does not help. */
  readonly retryAfterMs: number | null
  /** The operation may have been carried out all the same: it has run, and its end could not be stored. */
  readonly mayHaveRun: boolean
}

/** An earlier attempt's answer, as its record holds it. */
export interface Replayed {
  readonly action: 'replay'
  readonly answer: Answer
  /** It is the answer of this very run, which completed its record by hand, inside a transaction. */
  readonly isOwn?: true
}

/** What to send once a run has ended: its own answer, or what the record says in its place. */
export type Settled = { readonly action: 'send' } | Replayed | Refused

export const SEND: Settled = Object.freeze({ action: 'send' })
