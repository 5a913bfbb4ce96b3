import type { MaybePromise } from '../maybe-promise.js'
import type { Answer, CommandReply, StepChange } from '../record/record.js'
import type { OwnersCommand, OwnersReply, SentOperation, Store } from '../store.js'
import type { StoreCall } from './store-call.js'

/** A command of a run: the four that `send` takes too, and that of a step, which needs a step. */
export type SentCommand = OwnersCommand | 'step'

export type SentReply = OwnersReply & { readonly step: CommandReply }

interface SendsStep {
  readonly step: StepChange
}

/** A store, as all of them are spoken to: a command is sent, and its call is told the reply. */
export class SendingStore {
  readonly #store: Store
  /** The commands for which the store's `send` stands; `null`: it has none. */
  readonly #spoken: Pick<Store, OwnersCommand> | null

  constructor(store: Store) {
    this.#store = store
    this.#spoken = commandsBesideSend(store)
  }

  send<Name extends SentCommand>(name: Name, operation: SentOperation, call: StoreCall<SentReply[Name]>): void {
    const store = this.#store
    if (name === 'step') {
      const stepping = call as object as StoreCall<CommandReply>
      stepping.take(this.#step(operation as SentOperation & SendsStep))
      return
    }
    const command = store[name]
    // One that was replaced, by a wrapper or a subclass, does what `send` would not: for example, it seals the answer.
    if (this.#spoken !== null && command === this.#spoken[name as OwnersCommand]) {
      store.send?.(name as OwnersCommand, operation, call as object as StoreCall<never>)
      return
    }
    call.take(this.#ask(name as OwnersCommand, operation) as MaybePromise<SentReply[Name]>)
  }

  #step(operation: SentOperation & SendsStep): MaybePromise<CommandReply> {
    const { recordKey, token, scope, fingerprint, attempt, uncertain, terms } = operation
    const own = { token, scope, fingerprint, attempt, uncertain, retentionMs: terms.unknownRetentionMs }
    const { step } = this.#store
    if (step === undefined) throw new TypeError('The store has no `step`.')
    return step.call(this.#store, recordKey, { ...own, leaseMs: terms.leaseMs, ...operation.step })
  }

  #ask(name: OwnersCommand, operation: SentOperation): MaybePromise<OwnersReply[OwnersCommand]> {
    const store = this.#store
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
      case 'renew': {
        // While it is in flight its outcome would be unknown if its owner died, so it is kept as long as those are.
        const own = { token, scope, fingerprint, attempt, uncertain, retentionMs: unknownRetentionMs, leaseMs }
        return store.renew(recordKey, own)
      }
      case 'complete': {
        const answer = operation.answer as NonNullable<SentOperation['answer']>
        return store.complete(recordKey, { token, scope, fingerprint, attempt, uncertain, retentionMs, answer })
      }
      case 'release': {
        const isUncertain = operation.failure?.uncertain === true
        const own = { token, scope, fingerprint, attempt, uncertain: isUncertain, retentionMs: unknownRetentionMs }
        return store.release(recordKey, { ...own, failedMs })
      }
    }
  }
}

/** What they were when the engine was made, where `send` is defined: on the store, or on a prototype of it. */
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

/** The result of a step as the innermost store receives it. */
export function resultAsKept(
  store: Store,
  key: string,
  fingerprint: string,
  label: string,
  result: Uint8Array,
): Uint8Array {
  const { around } = store
  if (around === undefined) return result
  const kept = around.resultToKeep?.(key, fingerprint, label, result) ?? result
  return resultAsKept(around.store, key, fingerprint, label, kept)
}

/** The other way round. */
export function resultAsShown(
  store: Store,
  key: string,
  fingerprint: string,
  label: string,
  kept: Uint8Array,
): Uint8Array {
  const { around } = store
  if (around === undefined) return kept
  const inner = resultAsShown(around.store, key, fingerprint, label, kept)
  return around.resultToShow?.(key, fingerprint, label, inner) ?? inner
}

/** An answer as the innermost store receives it. */
export function asKept(store: Store, key: string, fingerprint: string, answer: Answer): Answer {
  const { around } = store
  return around === undefined ? answer : asKept(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))
}
