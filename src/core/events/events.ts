import { buildErrorPageHint, toLoggableError } from '../errors.js'
import { ignoreRejection } from '../maybe-promise.js'
import type { Identity } from '../record/identity.js'
import type { IdempotencyRecord, PreviousOutcome } from '../record/record.js'
import type { StoreEvent } from '../store/store.js'
import type { NotRun, RefusalCode } from './refusal.js'

type About = {
  readonly scope: string
  readonly key: string
}

/** Refusals caused by the record itself. */
export type Refusal = Exclude<RefusalCode, 'store_unavailable' | 'transaction_missing'>

/**
 * An error of the store's client, reduced to name, code and message: some clients attach a command's arguments to their
 * errors.
 */
export interface StoreFailure {
  readonly name: string
  readonly message: string
  readonly code?: string
}

/**
 * Why an attempt failed, which determines whether it certainly had no effect.
 *
 * Certain:
 * - `refused`: the status was 400 to 499, except 408 and 499.
 * - `certain_failure`: the handler threw a `CertainFailure`.
 * - `judged_certain`: the option `isCertainFailure` returned true.
 * - `declared`: with `effects: 'declared'`, the handler did not call `mayHaveEffect()`.
 *
 * Uncertain:
 * - `status`: any other status that is not a success.
 * - `foreign_error`: the handler threw another service's response, or an error of the system. The status is not its refusal.
 * - `no_answer`: the response was destroyed or broken off; or a runner's function threw.
 * - `may_have_effect`: the handler had called `mayHaveEffect()`, or the work of its transaction had ended that itself, as COMMIT does.
 * - `earlier_attempt`: the outcome of an earlier attempt is unknown.
 * - `no_transaction`: with `effects: 'in-transaction'`, it answered with a success without a transaction.
 */
export type FailureReason =
  | 'refused'
  | 'certain_failure'
  | 'judged_certain'
  | 'declared'
  | 'status'
  | 'foreign_error'
  | 'no_answer'
  | 'may_have_effect'
  | 'earlier_attempt'
  | 'no_transaction'

/** What happened. Contains no bodies, and no header values except the key itself. */
export type EngineEvent =
  /**
   * An attempt starts: the key was new, all earlier attempts had certainly failed (`'released'`), or the outcome of one
   * is unknown (`'outcome_unknown'`). With `effects: 'in-transaction'`: its transaction has taken the key.
   */
  | (About & {
      readonly type: 'claimed'
      readonly attempt: number
      readonly previousOutcome: PreviousOutcome
      readonly because: 'new' | 'released' | 'outcome_unknown'
    })
  /** The attempt's answer is stored. */
  | (About & {
      readonly type: 'completed'
      readonly attempt: number
      readonly status: number
      readonly answerKept: boolean
    })
  /** The attempt failed, and the key is released; `uncertain`: it may have had its effect. */
  | (About & {
      readonly type: 'failed'
      readonly attempt: number
      readonly uncertain: boolean
      readonly because: FailureReason
    })
  /** The result of a step is recorded. */
  | (About & { readonly type: 'step_done'; readonly attempt: number; readonly label: string })
  /** A step was not called, since an earlier attempt has recorded its result. */
  | (About & { readonly type: 'step_resumed'; readonly attempt: number; readonly label: string })
  /** The store did not confirm the result of a step in time. The run goes on, and recording it is retried. */
  | (About & { readonly type: 'step_pending'; readonly attempt: number; readonly label: string })
  /** A retry got the stored answer. */
  | (About & { readonly type: 'replayed'; readonly attempt: number })
  /** An operator settled the unknown outcome of this attempt; `'failed'`: the key is free. `'rerun'`: it may go on. */
  | (About & { readonly type: 'resolved'; readonly attempt: number; readonly as: 'failed' | 'completed' | 'rerun' })
  /** A request was refused because of the existing record. */
  | (About & { readonly type: Refusal })
  /**
   * An owner lost its lease. `'lapsed'`: it was unconfirmed for `leaseMs`; `'taken'`: another attempt owns the record.
   */
  | (About & { readonly type: 'lease_lost'; readonly attempt: number; readonly reason: 'lapsed' | 'taken' })
  /** A command to the store failed or timed out. */
  | (About & {
      readonly type: 'store_failed'
      readonly command: 'begin' | 'renew' | 'complete' | 'release' | 'step' | UnclaimedCommandName | OperatorCommandName
      readonly error: StoreFailure
    })
  /**
   * A claim was refused without being sent, because very many commands (`unanswered`) have timed out. Occasionally one
   * is sent, to check whether the store is back.
   */
  | (About & { readonly type: 'store_paused'; readonly unanswered: number })
  /** The handler runs although its claim was not confirmed (`storeFailure: 'runUnprotected'`). */
  | (About & { readonly type: 'unprotected' })
  /**
   * The store did not confirm a success in time. The completion is retried; the answer is sent anyway, unless the lease
   * was lost, the answer is a stream, or `unconfirmedSuccess` is `'withhold'`. Or the COMMIT of its transaction was not
   * confirmed: then nothing is sent until the store has shown whether it was committed.
   */
  | (About & { readonly type: 'completion_pending'; readonly attempt: number })
  /**
   * The completion was given up: the store has no answer, so the outcome will count as unknown (after an unprotected
   * run: as failed).
   */
  | (About & { readonly type: 'completion_given_up'; readonly attempt: number })
  /**
   * A record that was completed by hand, inside the application's transaction, is not completed: the transaction was
   * rolled back, or a savepoint was. The outcome is unknown, and the client was told to retry.
   */
  | (About & { readonly type: 'transaction_not_committed'; readonly attempt: number })
  | StoreEvent

/** The commands of a run that claims nothing. */
export type UnclaimedCommandName = 'look' | 'fence' | 'withhold'

/** The optional commands that a store receives. */
export type OperatorCommandName = 'inspect' | 'resolve' | 'list' | 'forget' | 'listScope'

export type CommandName = Extract<EngineEvent, { type: 'store_failed' }>['command']

/** `token`: of the run whose event it is, if it is a run's. */
export type Emit = (event: EngineEvent, token?: string) => void

/** Wraps a listener, so that one that throws or rejects changes nothing. The error of an event can be logged. */
export function guardListener<Event>(listener: ((event: Event) => unknown) | undefined): (event: Event) => void {
  if (listener === undefined) return () => {}
  return (event) => {
    try {
      ignoreRejection(listener(toLoggableEvent(event)))
    } catch {}
  }
}

export function toLoggableEvent<Event>(event: Event): Event {
  const { error } = event as { readonly error?: unknown }
  return error === undefined ? event : { ...event, error: toLoggableError(error) }
}

/** Emits what an operation gets in place of a run; nothing if the record is not the reason. */
export function reportNotRun(
  emit: (event: EngineEvent) => void,
  notRun: NotRun,
  { scope, key }: Identity,
  record: IdempotencyRecord | null,
): void {
  if (notRun.action === 'replay') emit({ type: 'replayed', scope, key, attempt: record?.attempt ?? 0 })
  else if (notRun.code !== 'store_unavailable' && notRun.code !== 'transaction_missing') {
    emit({ type: notRun.code, scope, key })
  }
}

export function toStoreFailure(error: unknown): StoreFailure {
  try {
    if (error instanceof Error) {
      const { name, message, code } = error as { name: string; message: string; code?: unknown }
      // node-redis's TimeoutError has no other words, nor has an AggregateError of Node's.
      const words = message === '' ? `${error.constructor.name}, without a message` : message
      return { name, message: words, ...(typeof code === 'string' && { code }) }
    }
  } catch {} // Reading its properties threw.
  return { name: 'Error', message: 'The store threw something that is not an Error.' }
}

/** Warns once per process for each code and each of its first topics, so that logs are not flooded. */
export function warnOnce(code: string, message: string, topic = ''): void {
  const topics = warned.get(code) ?? new Set()
  if (topics.has(topic) || topics.size === MOST_TOPICS) return
  warned.set(code, topics.add(topic))
  process.emitWarning(message, { type: 'OncePerKeyWarning', code })
}

const warned = new Map<string, Set<string>>()
/** A topic may be what others choose: a label with a client's words in it, the code of a store's error. */
const MOST_TOPICS = 20

/**
 * The default listener. It prints what an operator must know: a server that refuses payments, or runs them unprotected,
 * must not be silent. Messages contain no keys and no scopes, which do not belong in logs.
 */
export function warnUnheard(event: EngineEvent | { readonly type: 'rejected' | 'option_failed' }): void {
  if (event.type === 'store_failed') {
    const { name, message, code = name } = event.error
    const advice = mayBeConnection(event.error)
      ? 'Check that its server is reachable, and that its client is connected (`await client.connect()` with node-redis). '
      : ''
    warnOnce(
      'ONCE_PER_KEY_STORE_FAILED',
      `The store failed at \`${event.command}\` (${code}: ${message}). While it fails, requests with a key get 503, or run ` +
        `unprotected with \`storeFailure: 'runUnprotected'\`. ` +
        `${advice}This is printed once for each code; \`onEvent\` receives every case. ${buildErrorPageHint('store_unavailable')}`,
      code,
    )
  } else if (event.type === 'unprotected') {
    warnOnce(
      'ONCE_PER_KEY_UNPROTECTED',
      `A handler ran although its claim was not confirmed (storeFailure: 'runUnprotected'): a retry may run it again. ${ONCE}`,
    )
  } else if (event.type === 'transaction_not_committed') {
    warnOnce(
      'ONCE_PER_KEY_TRANSACTION_NOT_COMMITTED',
      'A record was completed by hand in a transaction that was not committed: the client got 503, and the outcome is unknown. ' +
        `Call completeIn as the last statement, and end the response after the COMMIT. ${ONCE}`,
    )
  } else if (event.type === 'evicted' && event.state === 'failed') {
    warnOnce(
      'ONCE_PER_KEY_UNKNOWN_OUTCOME_EVICTED',
      'The store has no room for all failures that may have had an effect, and drops the oldest: a retry of one runs as if ' +
        'it were new. Raise maxUncertainBytes, shorten unknownRetentionMs, or use Redis.',
    )
  } else if (event.type === 'eviction_policy') {
    warnOnce(
      'ONCE_PER_KEY_EVICTION_POLICY',
      `The store's eviction policy is ${event.policy ?? 'unknown'}. ${event.advice} ${ONCE}`,
    )
  } else if (event.type === 'connections_exhausted') {
    warnOnce(
      'ONCE_PER_KEY_CONNECTIONS_EXHAUSTED',
      `${event.waiting} of the store's commands are waiting for a connection. ${event.advice}`,
    )
  }
}

/** An error of a store of ours says itself what to do: its code is one of ours, in lower case. What clients throw does not. */
function mayBeConnection({ code }: StoreFailure): boolean {
  return code === undefined || !/^[a-z]+(?:_[a-z]+)+$/.test(code) || CONNECTION_CODES.includes(code)
}

const CONNECTION_CODES: readonly string[] = ['connection_lost', 'timed_out', 'database_failed']

const ONCE = 'This is printed once; `onEvent` receives every case.'
