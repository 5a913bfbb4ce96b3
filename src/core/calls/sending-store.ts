import { isThenable, type MaybePromise } from '../maybe-promise.js'
import type { OwnersCommand, OwnersReply, SentOperation, Store } from '../store.js'
import type { StoreCall } from './store-call.js'

/** A store, as all of them are spoken to: a command is sent, and its call is told the reply. */
export class SendingStore {
  readonly #store: Store
  /** The commands for which the store's `send` stands; `null`: it has none. */
  readonly #spoken: Pick<Store, OwnersCommand> | null

  constructor(store: Store) {
    this.#store = store
    this.#spoken = commandsBesideSend(store)
  }

  /** May throw what the store throws. */
  send<Name extends OwnersCommand>(name: Name, operation: SentOperation, call: StoreCall<OwnersReply[Name]>): void {
    const store = this.#store
    const command = store[name]
    // One that was replaced, by a wrapper or a subclass, does what `send` would not: for example, it seals the answer.
    if (this.#spoken !== null && command === this.#spoken[name]) {
      store.send?.(name, operation, call)
      return
    }
    const answer = this.#ask(name, operation) as MaybePromise<OwnersReply[Name]>
    if (isThenable(answer)) call.hearLater(answer)
    else call.heard(answer)
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
