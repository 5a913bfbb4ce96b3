import type { MaybePromise } from '../maybe-promise.js'
import type { Answer, CommandReply, StepChange } from '../record/record.js'
import type { OwnersCommand, OwnersReply, SentOperation, Store } from '../store.js'
import type { Sender, StoreCall } from './store-call.js'

/** A command of a run: the four that `send` takes too, and that of a step, for which a `SentStep` is sent. */
export type SentCommand = OwnersCommand | 'step'

export type SentReply = OwnersReply & { readonly step: CommandReply }

/** One change of a step, as it is sent, and sent again. */
export interface SentStep extends Sender {
  readonly step: StepChange
}

/** Sends commands to a store, by its `send` if it has one, else by its methods. */
export class SendingStore {
  readonly #store: Store
  /** The commands for which the store's `send` stands; `null`: it has none. */
  readonly #besideSend: Pick<Store, OwnersCommand> | null

  constructor(store: Store) {
    this.#store = store
    this.#besideSend = commandsBesideSend(store)
  }

  send<Name extends SentCommand>(name: Name, operation: SentOperation, call: StoreCall<SentReply[Name]>): void {
    const store = this.#store
    // One that was replaced, by a wrapper or a subclass, does what `send` would not: for example, it seals the answer.
    if (name !== 'step' && this.#besideSend !== null && store[name] === this.#besideSend[name as OwnersCommand]) {
      store.send?.(name, operation, call as object as StoreCall<never>)
      return
    }
    call.take(this.#ask(name, operation) as MaybePromise<SentReply[Name]>)
  }

  #ask(name: SentCommand, operation: SentOperation): MaybePromise<SentReply[SentCommand]> {
    const store = this.#store
    const { recordKey, token, scope, fingerprint, attempt, uncertain, terms } = operation
    const { leaseMs, retentionMs, unknownRetentionMs, failedMs, unknownOutcome } = terms
    switch (name) {
      // Each request sends these two. They copy no other object, which would cost some 100 bytes each.
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
}

/** While it is in flight its outcome would be unknown if its owner died, so it is kept as long as those are. */
function ownOf({ token, scope, fingerprint, attempt, uncertain, terms }: SentOperation) {
  return { token, scope, fingerprint, attempt, uncertain, retentionMs: terms.unknownRetentionMs }
}

/** The commands beside which `send` is defined, on the store or on a prototype of it, as they are when the engine is made. */
function commandsBesideSend(store: Store): Pick<Store, OwnersCommand> | null {
  if (store.send === undefined) return null
  let place: Store | null = store
  while (place !== null && !Object.hasOwn(place, 'send')) place = Object.getPrototypeOf(place)
  if (place === null) return null
  const { begin, renew, complete, release } = place
  return { begin, renew, complete, release }
}

/** Whether `store` keeps its records in `inner`: it is the same store, or wraps it. */
export function isKeptIn(store: Store, inner: Store): boolean {
  if (store === inner) return true
  return store.around !== undefined && isKeptIn(store.around.store, inner)
}

type ResultOf = Pick<SentOperation, 'recordKey' | 'fingerprint'> & Pick<StepChange, 'label'>

/** The result of a step as the innermost store receives it. */
export function resultAsKept({ around }: Store, of: ResultOf, result: Uint8Array): Uint8Array {
  if (around === undefined) return result
  const kept = around.resultToKeep?.(of.recordKey, of.fingerprint, of.label, result) ?? result
  return resultAsKept(around.store, of, kept)
}

/** The other way round. */
export function resultAsShown({ around }: Store, of: ResultOf, kept: Uint8Array): Uint8Array {
  if (around === undefined) return kept
  const inner = resultAsShown(around.store, of, kept)
  return around.resultToShow?.(of.recordKey, of.fingerprint, of.label, inner) ?? inner
}

/** An answer as the innermost store receives it. */
export function asKept(store: Store, key: string, fingerprint: string, answer: Answer): Answer {
  const { around } = store
  return around === undefined ? answer : asKept(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))
}
