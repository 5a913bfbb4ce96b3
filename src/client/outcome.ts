import type { Problem } from './reply.js'

/** The result of a call. */
export type Outcome = Done | Refused | Unknown

/**
 * The operation has happened, once. The key is kept until `forget`: until then the same operation gets the same
 * response.
 */
export interface Done {
  readonly outcome: 'done'
  /** Its body was received completely. */
  readonly response: Response
  /** Whether an earlier try had done it, and this is its stored response (`Idempotent-Replayed`). */
  readonly replayed: boolean
  /** `answer_not_kept`: it has happened, but its response was too large to be stored. Read the result elsewhere. */
  readonly problem?: Problem | undefined
}

/**
 * The operation has not happened. The key is forgotten: a corrected request is a new operation, with the same name or
 * another.
 */
export interface Refused {
  readonly outcome: 'refused'
  readonly response: Response
  /** The problem in the response, if it is `application/problem+json`. */
  readonly problem?: Problem | undefined
}

/**
 * The operation may have happened: the tries or the time were used up, the caller aborted, the key has expired
 * (`problem.code`), or the response does not tell. The key is kept. To continue, call `send` with the same operation, or find
 * out the outcome; never start it with another name.
 */
export interface Unknown {
  readonly outcome: 'unknown'
  /** The last try's response, if it had one. */
  readonly response?: Response | undefined
  readonly problem?: Problem | undefined
  /** Why the last try had none: the error of `fetch`, a `TimeoutError`, or the reason of the caller's signal. */
  readonly cause?: unknown
}
