import type { StoreCall } from '../calls/store-call.js'
import type { StoreCalls } from '../calls/store-calls.js'
import { getMonotonicMs, keepProcessAlive, startTimer } from '../calls/timers.js'
import { runAfterwards } from '../maybe-promise.js'
import { misuseError, renewalStoreFailedError } from '../misuse.js'
import type { CommandReply, IdempotencyRecord } from '../record/record.js'
import type { CoreParts } from './core-parts.js'
import type { LeaseState } from './run-state.js'

/** The run that a lease protects. */
export interface LeaseOwner {
  readonly leaseState: LeaseState
  /** Sends a renewal. */
  renew(): StoreCall<CommandReply>
  /** `'lapsed'`: not confirmed for `leaseMs`. `'taken'`: the record belongs to another attempt. */
  loseLease(reason: 'lapsed' | 'taken'): void
  /** A renewal was stale; `record` is the record that it found. */
  onRenewalRefused(record: IdempotencyRecord | null): void
  /** A renewal has restored a claim that the store had lost. */
  onRestored(): void
  /** `maxRunMs` has passed, so nothing renews the lease again. */
  onTimeOver(): void
  /** The lease is gone as well. */
  onLeaseOver(): void
}

/**
 * An owner's lease: renewed every third of it until `maxRunMs` has passed. It counts as lost if a command finds that
 * the record belongs to another attempt, or if `leaseMs` has passed since the last confirmed command was *sent*.
 */
export class Lease {
  readonly #owner: LeaseOwner
  readonly #leaseMs: number
  readonly #calls: StoreCalls
  #timer: NodeJS.Timeout
  /** When `maxRunMs` ends. */
  readonly until: number
  /** When the last command was sent that the store confirmed. Infinity: there is no lease that could lapse. */
  #confirmedAt: number
  #renewAt: number
  #renewal: StoreCall<CommandReply> | undefined
  /** A renewal is due, but the previous one is unanswered: only one copy at a time. */
  #isOverdue = false
  /** A transaction is open that would block a renewal, or that a renewal would abort: none is sent. */
  #isPaused = false
  /** A transaction has locked the record: until it ends nobody can take the record, however long that takes. */
  #isLocked = false
  /** The run is over, and nothing is renewed any more. */
  #hasEnded = false

  /**
   * `sentAt`: when the claim was sent. `isProtected: false`: the claim was not confirmed, so there is no lease that
   * could lapse.
   */
  constructor(owner: LeaseOwner, { options, calls }: CoreParts, sentAt: number, isProtected: boolean) {
    const { leaseMs, maxRunMs } = options
    this.#owner = owner
    this.#leaseMs = leaseMs
    this.#calls = calls
    const since = Math.floor(sentAt) // V8 keeps small integers in place, and other numbers as objects.
    this.until = since + maxRunMs
    this.#confirmedAt = isProtected ? since : Number.POSITIVE_INFINITY
    this.#renewAt = since + Math.floor(leaseMs / 3)
    this.#timer = startTimer(this.#onDue, this.#renewAt - getMonotonicMs())
  }

  /**
   * Called before anything that depends on the lease: after a suspension of the process, sockets may be served before
   * timers.
   */
  check(now = getMonotonicMs()): boolean {
    if (this.isHeld && !this.#isLocked && now >= this.#confirmedAt + this.#leaseMs) this.#owner.loseLease('lapsed')
    return this.isHeld
  }

  /** As far as is known. */
  get isHeld(): boolean {
    return !this.#hasEnded && this.#owner.leaseState === 'held'
  }

  /** Stops renewals until `resume`. Resolves when none is being sent. */
  async #pause(): Promise<void> {
    this.#isPaused = true
    if (this.#renewal?.reply === undefined) await keepProcessAlive(Promise.resolve(this.#renewal?.waitForReply()))
  }

  /** Renews once more, although none is due, and also if it has lapsed. `null`: there was no reply in time. */
  renewNow(): Promise<CommandReply | null> {
    return keepProcessAlive(Promise.resolve(this.#renew().waitForReply()))
  }

  /**
   * Renews once more, and then not until `resume`.
   *
   * @throws IdempotencyError `lease_lost`; `store_failed`: the store did not confirm the renewal in time.
   */
  async renewAndPause(): Promise<void> {
    await this.#pause()
    const reply = await this.renewNow()
    if (reply?.ok === true) return
    throw reply === null && this.check() ? renewalStoreFailedError() : misuseError('lease_lost')
  }

  /** `lock`, as soon as no renewal is being sent. */
  async pauseAndLock(): Promise<void> {
    await this.#pause()
    this.lock()
  }

  /** Until `resume`, the lock of the record replaces the lease, and nothing is renewed. */
  lock(): void {
    this.#isPaused = true
    this.#isLocked = true
  }

  resume(): void {
    this.#isPaused = false
    this.#isLocked = false
    if (!this.#hasEnded) this.#look(getMonotonicMs())
  }

  /** Another command, which was sent at this time, has renewed the lease. */
  onRenewed(sentAt: number): void {
    if (!this.isHeld) return
    this.#confirmedAt = Math.max(this.#confirmedAt, sentAt)
    this.#renewAt = Math.max(this.#renewAt, sentAt + this.#leaseMs / 3)
    this.#schedule(getMonotonicMs())
  }

  /** Returns the renewal that is still unanswered, if any, because its events are still to come. */
  end(): StoreCall<CommandReply> | undefined {
    this.#hasEnded = true
    clearTimeout(this.#timer)
    return this.#renewal
  }

  readonly #onDue = (): void => this.#look(getMonotonicMs())

  #look(now: number): void {
    this.check(now)
    if (now < this.until && this.#renews && now >= this.#renewAt) this.#renewOrWait(now)
    if (now >= this.until) this.#owner.onTimeOver()
    this.#schedule(now)
  }

  get #renews(): boolean {
    return this.#owner.leaseState !== 'gone' && !this.#isPaused
  }

  #renewOrWait(now: number): void {
    this.#renewAt = now + this.#leaseMs / 3
    const before = this.#renewal
    if (before === undefined || before.isReplied || this.#calls.isLost(before)) this.#renew()
    else this.#isOverdue = true
  }

  #renew(): StoreCall<CommandReply> {
    this.#isOverdue = false
    const call = this.#owner.renew()
    this.#renewal = call
    runAfterwards(call.waitForReply(), (reply) => {
      if (reply !== null) this.#onRenewalReply(reply, call)
      else if (!call.isReplied) call.onLateReply = (late) => this.#onRenewalReply(late, call)
    })
    return call
  }

  /** `null`: it failed or timed out. */
  #onRenewalReply(reply: CommandReply | null, call: StoreCall<CommandReply>): void {
    if (this.#hasEnded) return
    if (reply?.ok === true) {
      this.#confirmedAt = Math.max(this.#confirmedAt, call.sentAt)
      if (reply.restored === true) this.#owner.onRestored()
    } else if (reply !== null && !this.#isLocked) this.#owner.onRenewalRefused(reply.record)
    if (!this.#isOverdue || this.#isPaused || this.#renewal !== call) return
    this.#renewAt = getMonotonicMs()
    this.#look(this.#renewAt)
  }

  #schedule(now: number): void {
    if (this.#hasEnded) return // By what it has just called.
    const inTime = now < this.until
    const next = Math.min(
      inTime && this.#renews ? this.#renewAt : Number.POSITIVE_INFINITY,
      this.isHeld && !this.#isLocked ? this.#confirmedAt + this.#leaseMs : Number.POSITIVE_INFINITY,
      inTime ? this.until : Number.POSITIVE_INFINITY,
    )
    clearTimeout(this.#timer)
    if (next < Number.POSITIVE_INFINITY) this.#timer = startTimer(this.#onDue, next - now)
    else this.#owner.onLeaseOver()
  }
}
