import { IdempotencyError } from './errors.js'

export interface CertainFailureOptions {
  /**
   * The status that error handlers, including Express's own, read from the error (`status`, `statusCode`): 400 to 499,
   * except 408 and 499.
   * @default 422: the request was understood and refused
   */
  readonly status?: number
  /** The cause of the failure. */
  readonly cause?: unknown
}

/**
 * Throw this error if an operation failed and certainly had no effect, for example after a bank's clear "no". Its key
 * is released and a corrected request may follow, whatever status the application's error handling sends. The outcome
 * is still unknown after `mayHaveEffect()`, or if an earlier attempt's outcome is unknown.
 *
 * @example if (quote.expired) throw new CertainFailure('The quote has expired.', { status: 409 })
 */
export class CertainFailure extends Error {
  override readonly name = 'CertainFailure'
  readonly code = 'certain_failure'
  readonly status: number

  /** @throws IdempotencyError `arguments_invalid` for any other `status`. */
  constructor(message: string, { status = 422, cause }: CertainFailureOptions = {}) {
    super(message, cause === undefined ? undefined : { cause })
    if (!isRefusalStatus(status)) {
      throw new IdempotencyError(
        'arguments_invalid',
        `The status of a CertainFailure is 400 to 499, except 408 and 499; seen: ${String(status)}.`,
      )
    }
    this.status = status
  }

  /** The same, under the name that Express 4 reads. */
  get statusCode(): number {
    return this.status
  }
}

/** Checks the code: one process may load both an ES module and a CommonJS copy of the class. */
export function isCertainFailure(error: unknown): boolean {
  return (
    error instanceof Error && error.name === 'CertainFailure' && 'code' in error && error.code === 'certain_failure'
  )
}

/**
 * Whether the application refused: 400 to 499 except 408 and 499, which mean a timeout and a client that disconnected.
 */
export function isRefusalStatus(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 499
}
