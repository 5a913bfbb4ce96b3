import type { MaybePromise } from '../maybe-promise.js'
import type { Answer, CommandReply, StepChange } from '../record/record.js'
import type { OwnersCommand, OwnersReply, SentOperation, Store } from '../store.js'
import type { Sender } from './store-call.js'

/** A command of a run. For that of a step a `SentStep` is sent. */
export type SentCommand = OwnersCommand | 'step'

export type SentReply = OwnersReply & { readonly step: CommandReply }

/** One change of a step, as it is sent, and sent again. */
export interface SentStep extends Sender {
  readonly step: StepChange
}

/** Sends a command to the store. */
export function callStore<Name extends SentCommand>(
  store: Store,
  name: Name,
  operation: SentOperation,
): MaybePromise<SentReply[Name]> {
  return ask(store, name, operation) as MaybePromise<SentReply[Name]>
}

function ask(store: Store, name: SentCommand, operation: SentOperation): MaybePromise<SentReply[SentCommand]> {
  const { recordKey, token, scope, fingerprint, attempt, uncertain, terms } = operation
  const { leaseMs, retentionMs, unknownRetentionMs, failedMs, unknownOutcome } = terms
  switch (name) {
    case 'begin':
      return store.begin(recordKey, {
        token,
        scope,
        fingerprint,
        leaseMs,
        retentionMs: unknownRetentionMs,
        unknownOutcome,
      })
    case 'complete': {
      const answer = operation.answer as Answer
      return store.complete(recordKey, { token, scope, fingerprint, attempt, uncertain, retentionMs, answer })
    }
    case 'renew':
      return store.renew(recordKey, { ...ownOf(operation), leaseMs })
    case 'release': {
      const isUncertain = operation.failure?.uncertain === true
      return store.release(recordKey, { ...ownOf(operation), uncertain: isUncertain, failedMs })
    }
    case 'step':
      if (store.step === undefined) throw new TypeError('The store has no `step`.')
      return store.step(recordKey, { ...ownOf(operation), leaseMs, ...(operation as SentStep).step })
  }
}

/** While it is in flight its outcome would be unknown if its owner died, so it is kept as long as those are. */
function ownOf({ token, scope, fingerprint, attempt, uncertain, terms }: SentOperation) {
  return { token, scope, fingerprint, attempt, uncertain, retentionMs: terms.unknownRetentionMs }
}

/** Whether `store` keeps its records in `inner`: it is the same store, or wraps it. */
export function isKeptIn(store: Store, inner: Store): boolean {
  if (store === inner) return true
  return store.around !== undefined && isKeptIn(store.around.store, inner)
}

type ResultOf = Pick<SentOperation, 'recordKey' | 'fingerprint'> & Pick<StepChange, 'label'>

/** The result of a step as the innermost store receives it. */
export function toKeptResult({ around }: Store, of: ResultOf, result: Uint8Array): Uint8Array {
  if (around === undefined) return result
  const kept = around.resultToKeep?.(of.recordKey, of.fingerprint, of.label, result) ?? result
  return toKeptResult(around.store, of, kept)
}

/** The other way round. */
export function toShownResult({ around }: Store, of: ResultOf, kept: Uint8Array): Uint8Array {
  if (around === undefined) return kept
  const inner = toShownResult(around.store, of, kept)
  return around.resultToShow?.(of.recordKey, of.fingerprint, of.label, inner) ?? inner
}

/** An answer as the innermost store receives it. */
export function toKeptAnswer(store: Store, key: string, fingerprint: string, answer: Answer): Answer {
  const { around } = store
  return around === undefined
    ? answer
    : toKeptAnswer(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))
}
