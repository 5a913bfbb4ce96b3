import type { FailureReason } from './events.js'
import type { Settled } from './outcome.js'
import type { Answer } from './record.js'

/** Whether the effect of a failed run can be ruled out. */
export type FailureKind = 'certainly' | 'perhaps'

/** How somebody ends a run; `answer: null`: as a failure. */
export type OfferedEnd =
  | { readonly answer: Answer }
  | { readonly answer: null; readonly how: FailureKind; readonly because: FailureReason }

/** While it is open, ends of the run are offered to it. */
export interface OpenTransaction {
  /** The lock of the record stands for the lease. */
  readonly isCompleting: boolean
  /** Resolves with what is to be sent, once it is over; never, where the end came to nothing. */
  offer(end: OfferedEnd): Promise<Settled>
}

/** What completes a record inside a transaction: who owns it, and with what. */
export interface Completion {
  readonly token: string
  /** How long the record is kept, in milliseconds. */
  readonly retentionMs: number
  readonly answer: Answer
}
