import type { Problem } from './problem.js'
import type { Answer, PreviousOutcome } from './record.js'

/** What a binding tells the core of a request: facts, and no judgement. */
export interface RequestFacts<Req = unknown> {
  /** The framework's own request: what the option functions (`scope`, `skip`, …) are given. */
  readonly request: Req
  /** In upper case. */
  readonly method: string
  /** Path and query as sent, the mount point included. */
  readonly target: string
  /** Name, value, name, value, … as they came off the wire, decoded as Latin-1 (Node's `rawHeaders`). */
  readonly rawHeaders: readonly string[]
  /** What the body parser made; `undefined`: there is none. */
  readonly body: unknown
  /** Whether anybody has read the body's stream. */
  readonly bodyWasRead: boolean
  /** Whether the client has gone. Asked while a duplicate waits (`inFlightWaitMs`). */
  isAbandoned(): boolean
}

/** What the core tells a binding to do with a request. */
export type Decision =
  /** No key, or not a request that is covered: hand it on untouched. */
  | { readonly action: 'bypass' }
  /** Run the handler, hold its response, and at its end ask `execution.settle` what to send. */
  | { readonly action: 'execute'; readonly execution: Execution; readonly extraHeaders?: HeaderPairs }
  /** Send the stored answer; the handler does not run. */
  | { readonly action: 'replay'; readonly answer: Answer; readonly extraHeaders?: HeaderPairs }
  /** Send the problem; the handler does not run. */
  | { readonly action: 'reject'; readonly problem: Problem; readonly extraHeaders?: HeaderPairs }

/** Headers to add to whatever response this one request gets; never stored. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** What to send once a run has ended. */
export type Settled =
  /** The answer itself: the response as the handler made it. */
  | { readonly action: 'send' }
  /** Another attempt's answer, which the record holds. */
  | { readonly action: 'replay'; readonly answer: Answer }
  | { readonly action: 'reject'; readonly problem: Problem }

/** What a handler gets, as `req.idempotency`. */
export interface IdempotencyContext {
  readonly key: string
  readonly scope: string
  /** 1, 2, 3 … while the record lives; 0 for a run that no claim protects (`storeFailure: 'runUnprotected'`). */
  readonly attempt: number
  /**
   * What became of earlier attempts. `'unknown'`: one died, stalled, or failed after `mayHaveEffect()`; look whether the
   * effect took place before repeating it.
   */
  readonly previousOutcome: PreviousOutcome
  /** Aborts when the lease is lost: somebody else may run now, so stop. */
  readonly signal: AbortSignal
  /** Call it before the irrevocable step: a failure after it leaves the outcome unknown instead of failed. */
  mayHaveEffect(): void
  /**
   * A stable key (a UUID, RFC 9562 version 8) for a call to another service: the same for every attempt with the same
   * scope, key, fingerprint and label, so that the other side removes the duplicate that no lease can.
   *
   * @example await bank.transfer(order, { idempotencyKey: req.idempotency.deriveKey('bank transfer') })
   * @throws IdempotencyError `label_invalid` for an empty label; nothing changed.
   */
  deriveKey(label: string): string
  /** What a transactional store hands over, such as its transaction. */
  readonly context?: unknown
}

/** One run of the handler, from claim to end. */
export interface Execution extends IdempotencyContext {
  /** How large a body may be to be kept: what `keepsBody` goes by. */
  readonly maxAnswerBytes: number
  /** Whether a body of so many bytes with this `Content-Type` is kept. If not: settle with `body: null`, then stream. */
  keepsBody(byteLength: number, contentType: unknown): boolean
  /**
   * Ends the run with its answer, success or failure: the record changes first. Only the first end counts; a later one
   * is told what the first was told. Never rejects.
   */
  settle(answer: Answer): Promise<Settled>
  /** Ends the run without an answer: a failure. Never rejects. */
  fail(): Promise<void>
}
