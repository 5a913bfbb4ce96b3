import type { ProblemCode } from './problem.js'
import type { PreviousOutcome } from './record.js'
import type { StoreEvent } from './store.js'

/** Which record an event is about. */
interface About {
  readonly scope: string
  readonly key: string
}

/** Refusals whose reason is the record itself. */
export type Refusal = Extract<ProblemCode, 'in_flight' | 'mismatched' | 'answer_not_kept' | 'outcome_unknown'>

/** An error of the store's client, stripped of all but its words: some clients hang a command's arguments on theirs. */
export interface StoreFailure {
  readonly name: string
  readonly message: string
  readonly code?: string
}

/** What happened. No bodies, no header values beyond the key itself. */
export type IdempotencyEvent =
  /** An attempt starts. */
  | (About & { readonly type: 'claimed'; readonly attempt: number; readonly previousOutcome: PreviousOutcome })
  /** Its answer is stored. */
  | (About & {
      readonly type: 'completed'
      readonly attempt: number
      readonly status: number
      readonly answerKept: boolean
    })
  /** It failed, and the key is released; `uncertain`: it may have had its effect. */
  | (About & { readonly type: 'failed'; readonly attempt: number; readonly uncertain: boolean })
  /** A retry was given the stored answer. */
  | (About & { readonly type: 'replayed'; readonly attempt: number })
  /** An operator settled the unknown outcome of this attempt; `'failed'`: the key is free. */
  | (About & { readonly type: 'resolved'; readonly attempt: number; readonly as: 'failed' | 'completed' })
  /** A request was refused because of the record that stands. */
  | (About & { readonly type: Refusal })
  /** A request was refused because of its key or its body. */
  | { readonly type: 'rejected'; readonly code: Extract<ProblemCode, 'key_missing' | 'key_invalid' | 'body_too_deep'> }
  /** An owner lost its lease: `'lapsed'`: unconfirmed for `leaseMs`; `'taken'`: the record is no longer its own. */
  | (About & { readonly type: 'lease_lost'; readonly attempt: number; readonly reason: 'lapsed' | 'taken' })
  /** A command to the store failed or was not answered in time. */
  | (About & {
      readonly type: 'store_failed'
      readonly command: 'begin' | 'renew' | 'complete' | 'release' | 'inspect' | 'resolve'
      readonly error: StoreFailure
    })
  /** The handler runs although its claim was not confirmed (`storeFailure: 'runUnprotected'`). */
  | (About & { readonly type: 'unprotected' })
  /** The store did not confirm a success in time; it is sent all the same (unless the lease was lost), and retried. */
  | (About & { readonly type: 'completion_pending'; readonly attempt: number })
  /** It was given up: the store holds no answer, and the outcome will read as unknown (as failed, behind an unprotected run). */
  | (About & { readonly type: 'completion_given_up'; readonly attempt: number })
  /** A function among the options failed where nothing may fail; its default was used. */
  | {
      readonly type: 'option_failed'
      readonly option: 'renderProblem' | 'isSuccess' | 'keepHeader'
      readonly error: unknown
    }
  | StoreEvent

/** The commands that a store is sent. */
export type CommandName = Extract<IdempotencyEvent, { type: 'store_failed' }>['command']

export type Emit = (event: IdempotencyEvent) => void

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

export function isRefusal(code: ProblemCode): code is Refusal {
  return code === 'in_flight' || code === 'mismatched' || code === 'answer_not_kept' || code === 'outcome_unknown'
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
