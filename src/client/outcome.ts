import type { Problem } from './reply.js'

/** How a call ends. */
export type Outcome = Done | Refused | Unknown

/** It has happened, once. The key stays kept until `forget`: the same operation gets the same response until then. */
export interface Done {
  readonly outcome: 'done'
  /** Its body has been received whole. */
  readonly response: Response
  /** Whether an earlier try had done it, and this is its stored response (`Idempotent-Replayed`). */
  readonly replayed: boolean
  /** `answer_not_kept`: it has happened, but its response was too large to be stored. Look its result up. */
  readonly problem?: Problem | undefined
}

/** It has not happened. The key is forgotten: a corrected request is a new operation, under the same name or another. */
export interface Refused {
  readonly outcome: 'refused'
  readonly response: Response
  /** What the response says, where it is `application/problem+json`. */
  readonly problem?: Problem | undefined
}

/**
 * It may have happened: the retries or the time were over, the caller aborted, or what the server said does not tell. The key
 * stays kept. Call `send` with the same operation again to go on, or look the outcome up; never start it under another name.
 */
export interface Unknown {
  readonly outcome: 'unknown'
  /** That of the last try, if it had one. */
  readonly response?: Response | undefined
  readonly problem?: Problem | undefined
  /** Why the last try had none: the error of `fetch`, a `TimeoutError`, or the reason of the caller's signal. */
  readonly cause?: unknown
}
