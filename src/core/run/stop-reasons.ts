import { IdempotencyError } from '../errors.js'

/** The reasons with which a handler's `signal` aborts. */
export function leaseLost(): IdempotencyError {
  return new IdempotencyError(
    'lease_lost',
    'The lease of this idempotency key was lost: another attempt may be running. Stop.',
  )
}

export function runFailed(): IdempotencyError {
  return new IdempotencyError(
    'run_failed',
    'The run of this idempotency key has ended as a failure, for example because a time limit responded. Stop.',
  )
}
