import type { RequestRun } from './request-run.js'
import type { HeaderPairs, Rejected, Replay } from './settled.js'

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
  /**
   * Why `body` is not what was sent, for a binding that reads bodies itself: it has more bytes than are read (`body` is absent),
   * or is not the JSON that its content type says (`body` is its bytes).
   */
  readonly bodyFault?: 'too_large' | 'malformed' | undefined
  /** Whether the client has gone. Asked while a duplicate waits (`inFlightWaitMs`). */
  isAbandoned(): boolean
}

/** What a binding is told to do with a request. */
export type Decision =
  /** No key, or not a request that is covered: hand it on untouched. */
  | { readonly action: 'bypass' }
  /** Run the handler, hold its response, and at its end ask `run.settle` what to send. */
  | { readonly action: 'execute'; readonly run: RequestRun; readonly extraHeaders?: HeaderPairs }
  | Replay
  | Rejected
