import type { RefusalCode } from './outcome.js'
import type { PreviousOutcome } from './record.js'
import type { StoreEvent } from './store.js'

/** Which record an event is about. */
interface About {
  readonly scope: string
  readonly key: string
}

/** Refusals whose reason is the record itself. */
export type Refusal = Exclude<RefusalCode, 'store_unavailable'>

/** An error of the store's client, stripped of all but its words: some clients hang a command's arguments on theirs. */
export interface StoreFailure {
  readonly name: string
  readonly message: string
  readonly code?: string
}

/**
 * Why an attempt failed, and with it, whether that is certainly without effect.
 *
 * Certain:
 * - `refused`: it was answered with 400 to 499, except 408 and 499.
 * - `certain_failure`: the handler threw a `CertainFailure`.
 * - `judged_certain`: the option `isCertainFailure` said so.
 * - `declared`: the option `effects: 'declared'` says so, and the handler did not call `mayHaveEffect()`.
 *
 * Uncertain:
 * - `status`: it was answered with any other status that is no success.
 * - `no_answer`: the response was destroyed, or broken off; or the function of a runner threw.
 * - `may_have_effect`: the handler had called `mayHaveEffect()`.
 * - `earlier_attempt`: the outcome of an earlier attempt is unknown.
 */
export type FailureReason =
  | 'refused'
  | 'certain_failure'
  | 'judged_certain'
  | 'declared'
  | 'status'
  | 'no_answer'
  | 'may_have_effect'
  | 'earlier_attempt'

/** What happened. No bodies, no header values beyond the key itself. */
export type EngineEvent =
  /**
   * An attempt starts, because the key was new, all earlier attempts had certainly failed (`'released'`), or it is not known
   * what became of one (`'outcome_unknown'`).
   */
  | (About & {
      readonly type: 'claimed'
      readonly attempt: number
      readonly previousOutcome: PreviousOutcome
      readonly because: 'new' | 'released' | 'outcome_unknown'
    })
  /** Its answer is stored. */
  | (About & {
      readonly type: 'completed'
      readonly attempt: number
      readonly status: number
      readonly answerKept: boolean
    })
  /** It failed, and the key is released; `uncertain`: it may have had its effect. */
  | (About & {
      readonly type: 'failed'
      readonly attempt: number
      readonly uncertain: boolean
      readonly because: FailureReason
    })
  /** A retry was given the stored answer. */
  | (About & { readonly type: 'replayed'; readonly attempt: number })
  /** An operator settled the unknown outcome of this attempt; `'failed'`: the key is free. */
  | (About & { readonly type: 'resolved'; readonly attempt: number; readonly as: 'failed' | 'completed' })
  /** A request was refused because of the record that stands. */
  | (About & { readonly type: Refusal })
  /** An owner lost its lease: `'lapsed'`: unconfirmed for `leaseMs`; `'taken'`: the record is no longer its own. */
  | (About & { readonly type: 'lease_lost'; readonly attempt: number; readonly reason: 'lapsed' | 'taken' })
  /** A command to the store failed or was not answered in time. */
  | (About & {
      readonly type: 'store_failed'
      readonly command: 'begin' | 'renew' | 'complete' | 'release' | 'inspect' | 'resolve' | 'list'
      readonly error: StoreFailure
    })
  /**
   * A claim was refused without being sent, since very many commands (`unanswered`) were not answered in time. From time to
   * time one is sent, to see whether the store is back.
   */
  | (About & { readonly type: 'store_paused'; readonly unanswered: number })
  /** The handler runs although its claim was not confirmed (`storeFailure: 'runUnprotected'`). */
  | (About & { readonly type: 'unprotected' })
  /**
   * The store did not confirm a success in time. It is retried, and sent all the same, unless the lease was lost, the answer
   * is a stream, or `unconfirmedSuccess` is `'withhold'`. Or the COMMIT of its transaction was not confirmed: then the store is
   * asked what became of it, and nothing is sent before.
   */
  | (About & { readonly type: 'completion_pending'; readonly attempt: number })
  /** It was given up: the store holds no answer, and the outcome will read as unknown (as failed, behind an unprotected run). */
  | (About & { readonly type: 'completion_given_up'; readonly attempt: number })
  /**
   * A record that was completed by hand, inside a transaction of the application's, is not completed: the transaction was rolled
   * back, or a savepoint undone. The outcome is unknown, and the client was told to come back.
   */
  | (About & { readonly type: 'transaction_not_committed'; readonly attempt: number })
  | StoreEvent

/** The commands that a store is sent. */
export type CommandName = Extract<EngineEvent, { type: 'store_failed' }>['command']

/** `token`: of the run whose event it is, if it is a run's. */
export type Emit = (event: EngineEvent, token?: string) => void

/** A listener that throws, or rejects, changes nothing. */
export function safely<Event>(listener: ((event: Event) => unknown) | undefined): (event: Event) => void {
  if (listener === undefined) return () => {}
  return (event) => {
    try {
      const result = listener(event)
      if (result instanceof Promise) result.catch(() => {})
    } catch {}
  }
}

/** The record itself is the reason. */
export function isRefusal(code: RefusalCode): code is Refusal {
  return code !== 'store_unavailable'
}

export function storeFailure(error: unknown): StoreFailure {
  try {
    if (error instanceof Error) {
      const { name, message, code } = error as { name: string; message: string; code?: unknown }
      return { name, message, ...(typeof code === 'string' && { code }) }
    }
  } catch {} // It throws where it is looked at.
  return { name: 'Error', message: 'The store threw something that is not an Error.' }
}
