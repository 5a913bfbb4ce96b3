import { warnOnce } from '../../core/events/events.js'
import type { MaybePromise } from '../../core/maybe-promise.js'
import type { Answer } from '../../core/record/record.js'
import type { IdempotencyContext } from '../../core/run/context.js'
import type { AnswerSource } from '../../core/run/run-end.js'
import type { Problem } from '../options/problem.js'
import type { HeaderPairs } from '../request/facts.js'

/**
 * One run of a request's handler, for the binding, which ends it with or without the handler's answer. If store and
 * options are synchronous, so is its end.
 */
export interface RequestRun {
  /** The context that the handler receives. */
  readonly context: IdempotencyContext
  /** The largest body that is kept: the limit of `keepsBody`. */
  readonly maxAnswerBytes: number
  /** Whether the answer may be sent while it is being written. If not, it is held to its end, whatever its size. */
  readonly maySendParts: boolean
  /**
   * Whether a body of this size with this `Content-Type` is kept. If not, a whole one is settled with `body: null` and
   * then sent. One that is still being written is sent as it comes; at its end it is settled with `body: null` and
   * `confirmed`, and its end is sent only if the result is `'send'`.
   */
  keepsBody(byteLength: number, contentType: unknown): boolean
  /**
   * Ends the run with its answer, success or failure: the record changes first. Only the first end counts; later calls
   * get the first one's result. `confirmed`: a success that the store does not confirm in time is not sent, but refused
   * with `store_unavailable`; by default `unconfirmedSuccess` decides. The answer is the run's from now on: do not change it.
   * Never throws, and never rejects.
   */
  settle(answer: Answer, terms?: { readonly confirmed?: boolean }): MaybePromise<RequestEnd>
  /** Ends the run without an answer: a failure that may have had its effect. Never throws, and never rejects. */
  fail(): MaybePromise<RequestEnd>
  /**
   * The handler has returned, thrown or answered again after its answer was given: it waits for no transaction. If one is open, and is
   * rolled back, no other answer follows, and the client is told to retry.
   */
  stopped(): void
  /** Ends a run whose handler is not called: nothing can have happened, so the key is free. */
  failUncalled(): MaybePromise<RequestEnd>
  /**
   * The handler threw this error, or passed it on, and it is being handled. It decides what the response that follows says of
   * the run. After a `CertainFailure` the run has certainly failed, whatever is sent. After an error that is another service's
   * response, or the system's, a status from 400 to 499 is not the handler's refusal. After any other error the status decides.
   */
  reportError(error: unknown): void
  /** The handler is called again: what it threw before says nothing of the response that follows. */
  forgetError(): void
  /**
   * The handler has returned what to send: should that fail before its first byte, the error page that follows is judged as any other
   * answer, but its status is no refusal of the handler's.
   */
  willNotRefuse(): void
  /**
   * Resolves when nothing of the run is pending any more, after its last event: for platforms that stop after a response. It
   * may be later than what `settle` says: a completion that the store does not confirm in time is tried again.
   */
  ended(): Promise<void>
  /**
   * Calls the handler. A request with the same key that it dispatches to this engine is misuse `mounted_twice` until the run has ended: it
   * would find the run's own claim in flight. Optional for a binding, which pays for an `AsyncLocalStorage`.
   */
  inside<Result>(handler: () => Result): Result
  /** Registers the holder of the response: a store's `transaction` asks it to reset the response. */
  registerBuffer(response: AnswerBuffer): void
}

/** The holder of a response, for transactions: what the work sends is held until after the COMMIT, or discarded. */
export interface AnswerBuffer
  extends Pick<AnswerSource, 'onRollback' | 'onWorkResolved'>,
    Partial<Pick<AnswerSource, 'onTransactionBegin' | 'onTransactionEnd'>> {
  /**
   * The handler answers with what it returns, so work that its transaction has left behind cannot answer any more. Absent: work writes
   * to the response as the handler does.
   */
  readonly answersByReturning?: true
}

/** Send the stored answer; the handler does not run. */
export interface Replay {
  readonly action: 'replay'
  readonly answer: Answer
  readonly extraHeaders?: HeaderPairs
}

/** Send the problem; the handler does not run. */
export interface Rejected {
  readonly action: 'reject'
  readonly problem: Problem
  readonly extraHeaders?: HeaderPairs
}

/** What to send after a run has ended: the handler's own response, another attempt's answer, or a problem. */
export type RequestEnd = { readonly action: 'send' } | Replay | Rejected

/** What a binding must do with a request. */
export type Decision =
  /** No key, or not a covered request: pass it on unchanged. */
  | { readonly action: 'bypass' }
  /** Run the handler, hold its response, and when it ends call `run.settle` to learn what to send. */
  | { readonly action: 'execute'; readonly run: RequestRun; readonly extraHeaders?: HeaderPairs }
  | Replay
  | Rejected

/** Is given promises, which never reject, of what must end before the platform may stop. */
export type WaitUntil = (pending: Promise<void>) => void

/**
 * Has the platform wait for what is pending, if it can: only then is that asked for. A `waitUntil` that fails (that of a Worker does where
 * it is called without its object) changes nothing else: the claim has its owner, and the client gets the answer.
 */
export function waitFor(
  { waitUntil }: { readonly waitUntil?: WaitUntil | undefined },
  pending: () => Promise<void>,
): void {
  if (waitUntil === undefined) return
  try {
    Promise.resolve(waitUntil(pending())).catch(warn) // It may be an async function.
  } catch (error) {
    warn(error)
  }
}

function warn(error: unknown): void {
  const { message = String(error) } = (error ?? {}) as Partial<Error>
  warnOnce(
    'ONCE_PER_KEY_WAIT_UNTIL_FAILED',
    `waitUntil failed (${message}). Where the platform stops after a response, a handler whose client has left may be cut off. Pass a ` +
      'function that calls it on its object: `(pending) => context.waitUntil(pending)`. This is printed once.',
  )
}
