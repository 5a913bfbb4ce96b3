import type { RequestRun } from './request-run.js'
import type { HeaderPairs, Rejected, Replay } from './settled.js'

/** Facts about a request that a binding gives to the core, without judging them. */
export interface RequestFacts<Req = unknown> {
  /** The framework's request, which the option functions (`scope`, `skip`, …) receive. */
  readonly request: Req
  /** In upper case. */
  readonly method: string
  /** Path and query as sent, including the mount point. */
  readonly target: string
  /** Name, value, name, value, … as received, decoded as Latin-1 (Node's `rawHeaders`). */
  readonly rawHeaders: readonly string[]
  /**
   * Whether several lines of a header arrive as one value, joined by a comma and a space, as Fetch's `Headers` does.
   * @default false
   */
  readonly joinsHeaderLines?: boolean | undefined
  /** The body parser's result; `undefined` if there is none. */
  readonly body: unknown
  /** Whether anybody has read the body's stream. */
  readonly bodyWasRead: boolean
  /**
   * Why `body` is not what was sent, for a binding that reads bodies itself: it is larger than the limit, or a form with too many
   * fields (`body` is absent), or is not the JSON or the UTF-8 that its content type claims (`body` is its bytes).
   */
  readonly bodyFault?: 'too_large' | 'too_many_fields' | 'malformed' | undefined
  /** Whether the client has disconnected. Called while a duplicate waits (`inFlightWaitMs`). */
  isAbandoned(): boolean
}

/** What a binding must do with a request. */
export type Decision =
  /** No key, or not a covered request: pass it on unchanged. */
  | { readonly action: 'bypass' }
  /** Run the handler, hold its response, and when it ends call `run.settle` to learn what to send. */
  | { readonly action: 'execute'; readonly run: RequestRun; readonly extraHeaders?: HeaderPairs }
  | Replay
  | Rejected

/** Whoever asks about a request: told as a core's `Claimant` is, and of the application's misuse too. */
export interface Asking {
  /** Run the handler, hold its response, and settle the run with it. */
  claimed(run: RequestRun, extraHeaders: HeaderPairs | undefined): void
  /** Do not run it. */
  refused(decision: Exclude<Decision, { action: 'execute' }>): void
  /** Misuse by the application: nothing ran and nothing was stored. Pass it to the framework's error handling. */
  failed(error: unknown): void
  /** Whether the client has disconnected. Called while a duplicate waits (`inFlightWaitMs`). */
  isAbandoned(): boolean
}
