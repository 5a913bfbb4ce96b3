import type { RefusalCode } from '../core/index.js'

/**
 * An operation was not run, or its result cannot be given: nobody's mistake, so it is no IdempotencyError. Decide by `code`.
 *
 * - `in_flight`: another attempt runs it, or has taken it over from this one. Come back after `retryAfterMs`.
 * - `mismatched`: the key was used with another input. Nothing ran.
 * - `answer_not_kept`: it has run, and its result was not kept. It never runs again: look for its effect.
 * - `outcome_unknown`: an earlier attempt may have had its effect (`unknownOutcome: 'refuse'`). Nothing ran: an operator's
 *   `resolve` settles it.
 * - `store_unavailable`: the store failed. Nothing ran, or its end could not be stored, as the message says: come back after
 *   `retryAfterMs`, with the same key.
 */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly code: RefusalCode
  /** After so many milliseconds the same may be tried again; `null`: waiting does not help. */
  readonly retryAfterMs: number | null

  constructor(code: RefusalCode, retryAfterMs: number | null, hasRun: boolean) {
    super(hasRun ? WORDS_OF_A_RUN[code] : WORDS[code])
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

const WORDS: Readonly<Record<RefusalCode, string>> = {
  in_flight: 'The operation is running already: another attempt holds its key. Try again later, with the same key.',
  mismatched: 'The key was used for another input. A new operation needs a new key; a repeat has the same input.',
  answer_not_kept: 'The operation has run, but its result was not kept. It is not run again: look for its effect.',
  outcome_unknown:
    'An earlier attempt ended in a way that leaves its effect open, so the operation is not run again. Find out what became ' +
    'of it, and settle the key with `resolve`.',
  store_unavailable: 'The store could not be reached, and nothing was run. Try again later, with the same key.',
}

/** Its function has run, and what its record says stands in the place of what that returned. */
const WORDS_OF_A_RUN: Readonly<Record<RefusalCode, string>> = {
  ...WORDS,
  in_flight:
    'The function has run, but its lease was lost meanwhile: another attempt holds the key, or may. Try again later, with the ' +
    'same key.',
  store_unavailable:
    'The function has run, but its end could not be stored: it may have had its effect. Try again later, with the same key.',
}
