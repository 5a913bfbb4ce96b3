import { monotonicNow } from './clock.js'
import type { CoreParts } from './core-parts.js'
import { type Identity, storageKey, storageScope } from './identity.js'
import type { MaybePromise } from './maybe-promise.js'
import type { BeginReply, Claim } from './record.js'
import type { StoreCall } from './store-calls.js'
import { newToken } from './token.js'

/** A claim of a key, with what is needed to send it. It does not reference the request. */
export interface Claiming {
  readonly identity: Identity
  readonly recordKey: string
  readonly claim: Claim
}

/** A claim that was sent, or refused without being sent. */
export interface Sent {
  /** `null`: no usable reply. If the operation does not run, the claim must be given up. */
  readonly reply: BeginReply | null
  /** The store replied that the key is ours. */
  readonly isHeld: boolean
  readonly sentAt: number
  /** `undefined`: it was not sent. */
  readonly call: StoreCall<BeginReply> | undefined
}

/** Creates and sends claims, and releases those that will not run. */
export class Claims {
  readonly #core: CoreParts

  constructor(core: CoreParts) {
    this.#core = core
  }

  make(identity: Identity): Claiming {
    const { leaseMs, unknownRetentionMs: retentionMs, unknownOutcome } = this.#core.options
    const { fingerprint } = identity
    const scope = storageScope(identity)
    const claim = { token: newToken(), scope, fingerprint, leaseMs, retentionMs, unknownOutcome }
    return { identity, recordKey: storageKey(identity, scope), claim }
  }

  /** Sends the claim. May be called again: because of the token, the second claim is the same as the first. */
  send(claiming: Claiming): MaybePromise<Sent> {
    const { calls, emit } = this.#core
    const now = monotonicNow()
    if (!calls.backlog.mayClaim(now)) {
      const { scope, key } = claiming.identity
      emit({ type: 'store_paused', scope, key, unanswered: calls.backlog.unanswered })
      return { reply: null, isHeld: false, sentAt: now, call: undefined }
    }
    const call = calls.send('begin', claiming, claiming.claim)
    const { reply } = call
    return reply instanceof Promise ? this.#sentLater(reply, call) : this.#sent(reply, call)
  }

  async #sentLater(reply: Promise<BeginReply | null>, call: StoreCall<BeginReply>): Promise<Sent> {
    return this.#sent(await reply, call)
  }

  #sent(reply: BeginReply | null, call: StoreCall<BeginReply>): Sent {
    const { sentAt } = call
    const isHeld = reply?.acquired === true
    // A reply that is read after the lease has passed confirms nothing: the process was suspended meanwhile.
    const isLate = isHeld && monotonicNow() >= sentAt + this.#core.options.leaseMs
    return { reply: isLate ? null : reply, isHeld, sentAt, call }
  }

  /**
   * Releases a claim that will not run: immediately, and again when its late reply or error arrives, so that a command
   * that waited in the client's queue cannot hold the key.
   */
  giveUp(claiming: Claiming, { isHeld, call }: Sent): void {
    if (call === undefined) return
    if (!call.isAnswered) call.onLateAnswer = (late) => void this.#free(claiming, late?.acquired === true)
    void this.#free(claiming, isHeld)
  }

  /** Retried until the lease of the claim has ended anyway. */
  async #free(claiming: Claiming, isHeld: boolean): Promise<void> {
    const { options, calls, activity } = this.#core
    const { leaseMs, maxRunMs } = options
    const { token, scope, fingerprint, retentionMs } = claiming.claim
    if (!calls.backlog.startRelease(isHeld)) return
    activity.start()
    const terms = { token, scope, fingerprint, attempt: 0, uncertain: false, retentionMs, failedMs: maxRunMs + leaseMs }
    const until = monotonicNow() + leaseMs
    const call = calls.send('release', claiming, terms)
    const reply = await call.reply
    if (reply === null) await calls.sendAgain('release', claiming, terms, call, until)
    calls.backlog.endRelease()
    activity.end()
  }
}
