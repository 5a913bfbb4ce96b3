import type { StoreCall } from '../calls/store-call.js'
import { getMonotonicMs } from '../calls/timers.js'
import type { Refused, Replayed } from '../events/refusal.js'
import type { BeginReply } from '../record/record.js'
import type { CoreParts } from '../run/core-parts.js'
import type { Run } from '../run/run.js'
import type { ClaimedRun } from '../run/run-end.js'
import type { Unclaimed } from '../store/store.js'

export type Claim = StoreCall<BeginReply>

/** Sends claims, and releases those that will not run. */
export class Claims {
  readonly #core: CoreParts

  constructor(core: CoreParts) {
    this.#core = core
  }

  /**
   * Sends the claim; `null`: refused without being sent. May be called again: because of the token, the second claim is
   * the same as the first.
   */
  send(operation: Run, now: number): Claim | null {
    const { calls, emit } = this.#core
    if (!calls.backlog.mayClaim(now)) {
      const { scope, key } = operation.identity
      emit({ type: 'store_paused', scope, key, unanswered: calls.backlog.unanswered })
      return null
    }
    return this.areLooks ? this.#look(operation) : calls.send('begin', operation, now)
  }

  /** With `effects: 'in-transaction'`, nothing is claimed before the transaction: the key is looked at. */
  get areLooks(): boolean {
    return this.#core.options.effects === 'in-transaction'
  }

  #look(operation: Run): Claim {
    const { calls, options, terms } = this.#core
    const { recordKey, token, fingerprint } = operation
    const looking = { token, fingerprint, unknownOutcome: terms.unknownOutcome }
    const unclaimed = options.store.unclaimed as Unclaimed
    return calls.ask<BeginReply>('look', operation, () => unclaimed.look(recordKey, looking))
  }

  /** `null`: no usable reply. If the operation does not run, the claim must be given up. */
  replyTo({ reply, sentAt }: Claim): BeginReply | null {
    if (!reply?.acquired) return reply ?? null
    // A reply that is read after the lease has passed confirms nothing: the process was suspended meanwhile.
    const isLate = getMonotonicMs() >= sentAt + this.#core.options.leaseMs
    return isLate ? null : reply
  }

  /**
   * Releases a claim that will not run: immediately, and again when its late reply or error arrives, so that a command
   * that waited in the client's queue cannot hold the key.
   */
  giveUp(operation: Run, claim: Claim | null): void {
    if (claim === null || this.areLooks) return
    if (!claim.isReplied) claim.onLateReply = (late) => void this.#free(operation, late?.acquired === true)
    void this.#free(operation, claim.reply?.acquired === true)
  }

  /** Retried until the lease of the claim has ended anyway. */
  async #free(operation: Run, isHeld: boolean): Promise<void> {
    const { options, calls, activity } = this.#core
    if (!calls.backlog.startRelease(isHeld)) return
    activity.start()
    operation.failure = GIVEN_UP
    const until = getMonotonicMs() + options.leaseMs
    const call = calls.sendInBackground('release', operation)
    const reply = await call.waitForReply()
    if (reply === null) await calls.sendAgain('release', operation, call, until)
    calls.backlog.endRelease()
    activity.end()
  }
}

/** Nothing of it has run. */
const GIVEN_UP = Object.freeze({ uncertain: false })

export type Claimed = { readonly action: 'execute'; readonly run: ClaimedRun } | Replayed | Refused
