import type { FailureReason } from '../events/events.js'
import type { Settled } from '../events/outcome.js'
import type { Answer } from '../record/record.js'

/** Whether a failed run certainly had no effect. */
export type FailureKind = 'certainly' | 'perhaps'

/** How a run is to end; `answer: null`: as a failure. */
export type OfferedEnd =
  | { readonly answer: Answer }
  | { readonly answer: null; readonly how: FailureKind; readonly because: FailureReason }

/** The open transaction of a run: while it is open, ends of the run are offered to it. */
export interface OpenTransaction {
  /** The record is locked, which replaces the lease. */
  readonly isCompleting: boolean
  /** Resolves with what to send, after the transaction has ended; never resolves if the end was discarded. */
  offer(end: OfferedEnd): Promise<Settled>
  /**
   * Called by a transaction that is to follow. Resolves when the work that this one left behind has settled; `undefined`: it
   * has left nothing behind, so it must be awaited.
   */
  follow(): Promise<void> | undefined
}

/** What a store needs to complete a record inside a transaction. */
export interface Completion {
  readonly token: string
  /** How long the record is kept, in milliseconds. */
  readonly retentionMs: number
  readonly answer: Answer
}
