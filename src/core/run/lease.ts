import { keepProcessAlive } from '../calls/awaited.js'
import { monotonicNow, startTimer } from '../calls/clock.js'
import type { StoreCall } from '../calls/store-call.js'
import type { StoreCalls } from '../calls/store-calls.js'
import { runAfterwards } from '../maybe-promise.js'
import { misuseError, renewalStoreFailedError } from '../misuse.js'
import type { CommandReply, IdempotencyRecord } from '../record/record.js'
import type { CoreParts } from './operation.js'

/**
 * - `held`: as far as we know, nobody else may run.
 * - `lapsed`: not confirmed for `leaseMs`. Another attempt may have begun; a late confirmation of a renewal changes
 *   nothing.
 * - `taken`: the record belongs to another attempt.
 * - `ended`: the run is over, and nothing is renewed any more.
 */
type LeaseState = 'held' | 'lapsed' | 'taken' | 'ended'

export interface Leased {
  renew(): StoreCall<CommandReply>
  /** A renewal was stale; `record` is the record that it found. */
  renewalRefused(record: IdempotencyRecord | null): void
  /** A renewal has restored a claim that the store had lost. */
  restored(): void
  /** The lease was lost. Called once. */
  leaseLost(reason: 'lapsed' | 'taken'): void
  /** `maxRunMs` has passed, so nothing renews the lease again. */
  timeOver(): void
  /** The lease is gone as well. */
  leaseOver(): void
}

/**
 * An owner's lease: renewed every third of it until `maxRunMs` has passed. It counts as lost if a command finds that
 * the record belongs to another attempt, or if `leaseMs` has passed since the last confirmed command was *sent*.
 */
export class Lease {
  state: LeaseState = 'held'
  readonly #leased: Leased
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

  /**
   * `sentAt`: when the claim was sent. `isProtected: false`: the claim was not confirmed, so there is no lease that
   * could lapse.
   */
  constructor(leased: Leased, { options, calls }: CoreParts, sentAt: number, isProtected: boolean) {
    const { leaseMs, maxRunMs } = options
    this.#leased = leased
    this.#leaseMs = leaseMs
    this.#calls = calls
    const since = Math.floor(sentAt) // V8 keeps small integers in place, and other numbers as objects.
    this.until = since + maxRunMs
    this.#confirmedAt = isProtected ? since : Number.POSITIVE_INFINITY
    this.#renewAt = since + Math.floor(leaseMs / 3)
    this.#timer = startTimer(this.#onDue, this.#renewAt - monotonicNow())
  }

  /**
   * Called before anything that depends on the lease: after a suspension of the process, sockets may be served before
   * timers.
   */
  check(now = monotonicNow()): boolean {
    if (this.state === 'held' && !this.#isLocked && now >= this.#confirmedAt + this.#leaseMs) this.#lose('lapsed')
    return this.state === 'held'
  }

  /** A command found that the record belongs to another attempt. */
  take(): void {
    if (this.state === 'held') this.#lose('taken')
    else if (this.state === 'lapsed') this.state = 'taken'
  }

  /** Stops renewals until `resume`. Resolves when none is being sent. */
  async #pause(): Promise<void> {
    this.#isPaused = true
    if (this.#renewal?.reply === undefined) await keepProcessAlive(Promise.resolve(this.#renewal?.whenReplied()))
  }

  /** Renews once more, although none is due, and also if it has lapsed. `null`: there was no reply in time. */
  renewNow(): Promise<CommandReply | null> {
    return keepProcessAlive(Promise.resolve(this.#renew().whenReplied()))
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
    if (this.state !== 'ended') this.#look(monotonicNow())
  }

  /** Another command, which was sent at this time, has renewed the lease. */
  renewedAt(sentAt: number): void {
    if (this.state !== 'held') return
    this.#confirmedAt = Math.max(this.#confirmedAt, sentAt)
    this.#renewAt = Math.max(this.#renewAt, sentAt + this.#leaseMs / 3)
    this.#schedule(monotonicNow())
  }

  /** The run no longer has a record to renew, but continues: it may still end until `maxRunMs` has passed. */
  giveUp(): void {
    if (this.state !== 'ended') this.state = 'taken'
  }

  /** Returns the renewal that is still unanswered, if any, because its events are still to come. */
  end(): StoreCall<CommandReply> | undefined {
    this.state = 'ended'
    clearTimeout(this.#timer)
    return this.#renewal
  }

  readonly #onDue = (): void => this.#look(monotonicNow())

  #look(now: number): void {
    this.check(now)
    if (now < this.until && this.#renews && now >= this.#renewAt) this.#renewOrWait(now)
    if (now >= this.until) this.#leased.timeOver()
    this.#schedule(now)
  }

  get #renews(): boolean {
    return this.state !== 'taken' && !this.#isPaused
  }

  #renewOrWait(now: number): void {
    this.#renewAt = now + this.#leaseMs / 3
    const before = this.#renewal
    if (before === undefined || before.isReplied || this.#calls.isLost(before)) this.#renew()
    else this.#isOverdue = true
  }

  #renew(): StoreCall<CommandReply> {
    this.#isOverdue = false
    const call = this.#leased.renew()
    this.#renewal = call
    runAfterwards(call.whenReplied(), (reply) => {
      if (reply !== null) this.#renewed(reply, call)
      else if (!call.isReplied) call.onLateReply = (late) => this.#renewed(late, call)
    })
    return call
  }

  /** `null`: it failed or timed out. */
  #renewed(reply: CommandReply | null, call: StoreCall<CommandReply>): void {
    if (this.state === 'ended') return
    if (reply?.ok === true) {
      this.#confirmedAt = Math.max(this.#confirmedAt, call.sentAt)
      if (reply.restored === true) this.#leased.restored()
    } else if (reply !== null && !this.#isLocked) this.#leased.renewalRefused(reply.record)
    if (!this.#isOverdue || this.#isPaused || this.#renewal !== call) return
    this.#renewAt = monotonicNow()
    this.#look(this.#renewAt)
  }

  #schedule(now: number): void {
    const inTime = now < this.until
    const next = Math.min(
      inTime && this.#renews ? this.#renewAt : Number.POSITIVE_INFINITY,
      this.state === 'held' && !this.#isLocked ? this.#confirmedAt + this.#leaseMs : Number.POSITIVE_INFINITY,
      inTime ? this.until : Number.POSITIVE_INFINITY,
    )
    clearTimeout(this.#timer)
    if (next < Number.POSITIVE_INFINITY) this.#timer = startTimer(this.#onDue, next - now)
    else this.#leased.leaseOver()
  }

  #lose(reason: 'lapsed' | 'taken'): void {
    this.state = reason
    this.#leased.leaseLost(reason)
  }
}
