import type { HeaderPairs } from '../request/facts.js'
import type { Rejected, Replay, RequestRun } from './request-run.js'

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
