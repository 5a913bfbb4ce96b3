import type { FailureReason } from '../events/events.js'
import type { Fenced } from '../record/looked.js'
import type { Answer, BeginReply, CommandReply, IdempotencyRecord } from '../record/record.js'

/** How a failure is recorded. */
export interface Failure {
  /** The attempt may have had its effect. */
  readonly uncertain: boolean
  readonly because: FailureReason
}

/** Whether a failed run certainly had no effect. */
export type FailureKind = 'certainly' | 'perhaps'

/**
 * - `held`: as far as we know, nobody else may run.
 * - `lapsed`: not confirmed for `leaseMs`. Another attempt may have begun; a late confirmation of a renewal changes nothing.
 * - `gone`: the record belongs to another attempt, or nothing renews it any more.
 */
export type LeaseState = 'held' | 'lapsed' | 'gone'

/** What is known of a run in each of its phases. */
export interface RunFacts {
  /** As returned by the store; 0: its claim is not confirmed, so nothing prevents another attempt at the same time. */
  readonly attempt: number
  /** The outcome of an earlier attempt is unknown. */
  readonly isEarlierUnknown: boolean
  /** A step of this run has begun, and was not taken back. */
  readonly hasStep: boolean
  /** The handler has called `mayHaveEffect()`. */
  readonly mayHaveEffect: boolean
  /** `effects: 'declared'`: a failure without `mayHaveEffect()` is certain. */
  readonly isDeclared: boolean
  /** Another attempt has the key. Only for a run that claims nothing (`unclaimed-machine.ts`). */
  readonly isTaken: boolean
  /** What the work has written may be committed without a record. Only for such a run, too. */
  readonly mayBeCommitted: boolean
}

/** What a client gets if nothing prevents it: the handler's own answer, or, in its place, that it should ask again. */
export type OwnEnd = 'own' | 'unconfirmed'

export type RunState = {
  readonly lease: LeaseState
  readonly facts: RunFacts
} & (
  | { readonly phase: 'running'; readonly byHand: Answer | null }
  | { readonly phase: 'storing'; readonly answer: Answer; readonly mustBeConfirmed: boolean }
  /** `end`: what the client is to get, `null` if it was told already. */
  | ({ readonly phase: 'failing'; readonly end: OwnEnd | null } & GivenFailure)
  | { readonly phase: 'releasing'; readonly failure: Failure; readonly end: OwnEnd | null }
  | {
      readonly phase: 'pending'
      readonly answer: Answer | null
      readonly failure: Failure | null
      readonly end: OwnEnd | null
    }
  /** `isByHand`: the application's own transaction completes the record; else the one of `transaction`, which goes on. */
  | { readonly phase: 'verifying'; readonly answer: Answer; readonly isByHand: boolean; readonly end: OwnEnd }
  | { readonly phase: 'over'; readonly how: 'committed' | 'by hand' | 'otherwise' }
  /** This phase and the following ones are those of a run that claims nothing. `failure`: to report; `kept`: what retries get. */
  | {
      readonly phase: 'fencing'
      readonly failure: Failure | null
      readonly kept: KeptFailure | null
      readonly end: OwnEnd
    }
  | { readonly phase: 'claiming'; readonly kept: KeptFailure }
  | { readonly phase: 'letting go' }
  | {
      readonly phase: 'withholding'
      readonly because: FailureReason
      readonly end: OwnEnd | 'transaction missing' | null
    }
)

/** The state of a run whose claim is on its way. */
export const CLAIMING: RunState = {
  phase: 'running',
  lease: 'gone',
  byHand: null,
  facts: {
    attempt: 0,
    isEarlierUnknown: false,
    hasStep: false,
    mayHaveEffect: false,
    isDeclared: false,
    isTaken: false,
    mayBeCommitted: false,
  },
}

/** How a handler has failed, before it is judged. */
export interface GivenFailure {
  readonly how: FailureKind
  readonly because: FailureReason
}

/** A failure that retries get, so that it completes the record. */
export interface KeptFailure {
  readonly answer: Answer
  readonly mustBeConfirmed: boolean
}

/** A run in this phase. */
export type In<Phase extends RunState['phase']> = Extract<RunState, { phase: Phase }>

export type RunEvent =
  | { readonly type: 'answered'; readonly answer: Answer; readonly mustBeConfirmed: boolean }
  | {
      readonly type: 'failed'
      readonly how: FailureKind
      readonly because: FailureReason
      readonly kept: KeptFailure | null
      /** It fails in place of an answer that may be untrue: no answer of the handler's is sent. */
      readonly isWithdrawn: boolean
      /** A step is running: the next attempt must not call one that is still at the bank. */
      readonly isInStep: boolean
    }
  | { readonly type: 'replied'; readonly reply: CommandReply }
  /** There was no reply in time. It may still come. */
  | { readonly type: 'unanswered' }
  /** There was no reply until `maxRunMs` had passed. */
  | { readonly type: 'given up' }
  | { readonly type: 'lease checked' }
  | { readonly type: 'renewed'; readonly reply: CommandReply | null }
  /** Nothing of the steps is running any more, or `maxRunMs` has passed. */
  | { readonly type: 'steps over' }
  | { readonly type: 'lease lost'; readonly reason: 'lapsed' | 'taken' }
  /** `maxRunMs` has passed, and the lease is gone. */
  | { readonly type: 'lease over' }
  | { readonly type: 'committed'; readonly answer: Answer }
  | { readonly type: 'commit unconfirmed'; readonly answer: Answer }
  | { readonly type: 'completed by hand'; readonly answer: Answer }
  | { readonly type: 'fenced'; readonly found: Fenced | null }
  | { readonly type: 'claimed'; readonly reply: BeginReply | null }
  | { readonly type: 'known'; readonly facts: Partial<RunFacts> }

export type RunEffect =
  | { readonly do: 'send complete'; readonly answer: Answer }
  | { readonly do: 'send release'; readonly failure: Failure }
  /** Repeats the last command until it is answered, or `maxRunMs` has passed. `isAwaited`: the client waits for the reply. */
  | { readonly do: 'send again'; readonly isAwaited: boolean }
  | { readonly do: 'check lease' }
  /** No step is running, so that the failure is released at once. */
  | { readonly do: 'release' }
  | { readonly do: 'renew' }
  | { readonly do: 'report'; readonly type: 'completed'; readonly answer: Answer }
  | { readonly do: 'report'; readonly type: 'failed'; readonly failure: Failure }
  | { readonly do: 'report'; readonly type: 'lease_lost'; readonly reason: 'lapsed' | 'taken' }
  | {
      readonly do: 'report'
      readonly type: 'completion_pending' | 'completion_given_up' | 'transaction_not_committed'
    }
  | { readonly do: 'stop work'; readonly because: 'run_failed' | 'lease_lost' }
  /** Duplicates that wait get the answer. */
  | { readonly do: 'wake'; readonly answer: Answer }
  /** Duplicates that wait ask the store. */
  | { readonly do: 'free key' }
  | { readonly do: 'tell'; readonly end: OwnEnd | 'transaction missing' }
  /** The record belongs to another attempt, and says what the client gets. */
  | { readonly do: 'tell as recorded'; readonly record: IdempotencyRecord | null }
  /** The answer that the record has, in place of what the handler has answered. */
  | { readonly do: 'tell stored'; readonly answer: Answer }
  | { readonly do: 'tell transaction'; readonly outcome: 'committed' | 'rolled back' | 'unknown' }
  /** The key was taken by a claim of this run. */
  | { readonly do: 'claim made' }
  | { readonly do: 'send begin' }
  /** `isRepeated`: until no transaction has the key, or `maxRunMs` has passed. */
  | { readonly do: 'send fence'; readonly isRepeated: boolean }
  | { readonly do: 'send withhold'; readonly isRepeated: boolean }
  /** The handler's answer is not sent: reports why, and tells it. */
  | { readonly do: 'refuse'; readonly because: IdempotencyRecord | 'unconfirmed' | 'in flight' }
  /** Nothing waits for the handler's answer any longer. */
  | { readonly do: 'abandon' }
  | { readonly do: 'end' }
