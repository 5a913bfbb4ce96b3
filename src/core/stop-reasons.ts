import { IdempotencyError } from './errors.js'

/** The reasons that a handler's `signal` gives. */
export function leaseLost(): IdempotencyError {
  return new IdempotencyError(
    'lease_lost',
    'The lease of this idempotency key was lost: another attempt may run now. Stop.',
  )
}

export function runFailed(): IdempotencyError {
  return new IdempotencyError(
    'run_failed',
    'The run of this idempotency key has ended as a failure, such as by a time limit that answered. Stop.',
  )
}
