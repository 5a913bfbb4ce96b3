import { IdempotencyError } from './errors.js'

export interface CertainFailureOptions {
  /**
   * The status that error handlers find on it (`status`, `statusCode`), Express's own among them: 400 to 499, except 408
   * and 499.
   * @default 422: the request was understood, and refused
   */
  readonly status?: number
  /** What led to it. */
  readonly cause?: unknown
}

/**
 * Throw it where an operation has failed and certainly had no effect, such as a bank's clear "no": its key is released, and
 * a corrected request may follow under it, whatever status the application's error handling answers with. After
 * `mayHaveEffect()`, or where an earlier attempt's outcome is unknown, the outcome is unknown all the same.
 *
 * @example if (quote.expired) throw new CertainFailure('The quote has expired.', { status: 409 })
 */
export class CertainFailure extends Error {
  override readonly name = 'CertainFailure'
  readonly code = 'certain_failure'
  readonly status: number

  /** @throws IdempotencyError `arguments_invalid`, where `status` is none of those. */
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

  /** The same under Express 4's name for it. */
  get statusCode(): number {
    return this.status
  }
}

/** By its code: an ES module and a CommonJS copy of the class can meet in one process. */
export function isCertainFailure(error: unknown): boolean {
  return (
    error instanceof Error && error.name === 'CertainFailure' && 'code' in error && error.code === 'certain_failure'
  )
}

/** The application refused: 400 to 499 except 408 and 499, which say that time ran out, or the client left. */
export function isRefusalStatus(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 499
}
