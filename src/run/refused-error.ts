import type { RefusalCode } from '../core/index.js'

/**
 * An operation was not run, or its result is not available. This is not misuse, so it is not an IdempotencyError. Check
 * `code`.
 *
 * - `in_flight`: another attempt is running it, or has taken it over from this one. Retry after `retryAfterMs`.
 * - `mismatched`: the key was used with another input. Nothing ran.
 * - `answer_not_kept`: it has run, and its result was not kept. It never runs again: check its effect.
 * - `outcome_unknown`: an earlier attempt may have had its effect (`unknownOutcome: 'refuse'`). Nothing ran: an
 *   operator must settle it with `resolve`.
 * - `transaction_missing`: with `effects: 'in-transaction'`, the function has returned without a transaction. Its outcome is unknown.
 * - `key_expired`: it was first sent (`firstSent`) so long ago that its record may be gone. Nothing ran: check its effect.
 * - `store_unavailable`: the store failed. Nothing ran, or its end could not be stored, as the message says: retry
 *   after `retryAfterMs`, with the same key.
 */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly code: RefusalCode
  /** After this time a retry is worthwhile; `null`: waiting does not help. */
  readonly retryAfterMs: number | null

  constructor(code: RefusalCode, retryAfterMs: number | null, hasRun: boolean) {
    super(hasRun ? WORDS_OF_A_RUN[code] : WORDS[code])
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

const WORDS: Readonly<Record<RefusalCode, string>> = {
  in_flight: 'The operation is already running: another attempt holds its key. Try again later, with the same key.',
  mismatched:
    'The key was used with another input. A new operation needs a new key; a repeat must have the same input.',
  answer_not_kept: 'The operation has run, but its result was not kept. It is not run again: check its effect.',
  outcome_unknown:
    'An earlier attempt may have had its effect, so the operation is not run again. Find out whether it had, and settle ' +
    'the key with `resolve`.',
  key_expired:
    'The operation was first sent so long ago that its record may be gone, so it is not run. Find out whether it had its effect.',
  store_unavailable: 'The store could not be reached, and nothing ran. Try again later, with the same key.',
  transaction_missing:
    "The function returned without a transaction, but with effects: 'in-transaction' all effects are inside one: what it did cannot be " +
    'seen. Do it inside the store’s `transaction`; if there is nothing to write: `transaction(context, work, { allowEmpty: true })`.',
}

/** The function has run, but the record says something else than its result. */
const WORDS_OF_A_RUN: Readonly<Record<RefusalCode, string>> = {
  ...WORDS,
  in_flight:
    'The function has run, but its lease was lost meanwhile: another attempt may hold the key. Try again later, with the ' +
    'same key.',
  store_unavailable:
    'The function has run, but its end could not be stored: it may have had its effect. Try again later, with the same key.',
}
