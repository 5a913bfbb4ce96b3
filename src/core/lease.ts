import { monotonicNow } from './clock.js'
import type { CoreParts } from './core-parts.js'
import { Deadline, type DeadlineQueue } from './deadlines.js'
import { whenever } from './maybe-promise.js'
import type { CommandReply, IdempotencyRecord } from './record.js'
import type { StoreCall, StoreCalls } from './store-calls.js'

/**
 * - `held`: as far as we know, nobody else may run.
 * - `lapsed`: not confirmed for `leaseMs`. Another attempt may have begun; a renewal that is confirmed late changes nothing.
 * - `taken`: the record is another attempt's.
 * - `ended`: the run is over, and nothing is renewed any more.
 */
export type LeaseState = 'held' | 'lapsed' | 'taken' | 'ended'

/** Whose lease it is. */
export interface Leased {
  /** Sends a renewal. */
  renew(): StoreCall<CommandReply>
  /** Hears that a renewal was stale, and which record it met. */
  renewalRefused(record: IdempotencyRecord | null): void
  /** Hears, once, that the lease is lost. */
  leaseLost(reason: 'lapsed' | 'taken'): void
  /** Hears that `maxRunMs` is over, and the lease with it: nothing will renew it again. */
  leaseOver(): void
}

/**
 * An owner's lease: renewed at every third of it until `maxRunMs` is over. It counts as lost where a command finds the record
 * to be another's, or when `leaseMs` has passed since the last confirmed command was *sent*.
 */
export class Lease extends Deadline {
  state: LeaseState = 'held'
  readonly #leased: Leased
  readonly #leaseMs: number
  readonly #calls: StoreCalls
  readonly #deadlines: DeadlineQueue
  /** When `maxRunMs` is over. */
  readonly #until: number
  /** When the last command was sent that the store confirmed. Infinity: there is no lease that time could end. */
  #confirmedAt: number
  /** When the next renewal is due. */
  #renewAt: number
  /** The last renewal that was sent. */
  #renewal: StoreCall<CommandReply> | undefined
  /** A renewal is due, but the one before is not answered: one copy at a time. */
  #isOverdue = false
  /** A transaction is open that a renewal would wait for, or abort: none is sent. */
  #isPaused = false
  /** A transaction has locked the record: until it is over, nobody can take it, however long that takes. */
  #isLocked = false

  /** `sentAt`: when the claim was sent. `isProtected: false`: the claim was not confirmed, so there is no lease to lose by time. */
  constructor(leased: Leased, { options, calls, deadlines }: CoreParts, sentAt: number, isProtected: boolean) {
    super()
    const { leaseMs, maxRunMs } = options
    this.#leased = leased
    this.#leaseMs = leaseMs
    this.#calls = calls
    this.#deadlines = deadlines
    this.#until = sentAt + maxRunMs
    this.#confirmedAt = isProtected ? sentAt : Number.POSITIVE_INFINITY
    this.#renewAt = sentAt + leaseMs / 3
    deadlines.set(this, this.#renewAt)
  }

  get until(): number {
    return this.#until
  }

  /** Where a process was stopped, its sockets may be heard before its timers: asked before anything depends on the lease. */
  check(now = monotonicNow()): boolean {
    if (this.state === 'held' && !this.#isLocked && now >= this.#confirmedAt + this.#leaseMs) this.#lose('lapsed')
    return this.state === 'held'
  }

  /** A command met a record that is another attempt's. */
  take(): void {
    if (this.state === 'held') this.#lose('taken')
    else if (this.state === 'lapsed') this.state = 'taken'
  }

  /** Sends no more renewals until `resume`. Resolves when none is on its way. */
  async pause(): Promise<void> {
    this.#isPaused = true
    await this.#renewal?.reply
  }

  /** The record's lock stands for the lease until `resume`. */
  lock(): void {
    this.#isPaused = true
    this.#isLocked = true
  }

  resume(): void {
    this.#isPaused = false
    this.#isLocked = false
    if (this.state !== 'ended') this.onDue(monotonicNow())
  }

  /** Renews it now. Whether the store has confirmed that. */
  async confirm(): Promise<boolean> {
    const call = this.#renew()
    const reply = await call.reply
    return reply?.ok === true
  }

  /** The run has nothing to renew any more, and goes on: until `maxRunMs` is over it may still tell its end. */
  giveUp(): void {
    if (this.state !== 'ended') this.state = 'taken'
  }

  /** Whether a renewal is on its way, whose events are still to come. */
  end(): StoreCall<CommandReply> | undefined {
    this.state = 'ended'
    this.#deadlines.remove(this)
    return this.#renewal
  }

  override onDue(now: number): void {
    this.check(now)
    if (now < this.#until && this.#renews && now >= this.#renewAt) this.#renewOrWait(now)
    this.#schedule(now)
  }

  get #renews(): boolean {
    return this.state !== 'taken' && !this.#isPaused
  }

  #renewOrWait(now: number): void {
    this.#renewAt = now + this.#leaseMs / 3
    const before = this.#renewal
    if (before === undefined || before.isAnswered || this.#calls.isLost(before)) this.#renew()
    else this.#isOverdue = true
  }

  #renew(): StoreCall<CommandReply> {
    this.#isOverdue = false
    const call = this.#leased.renew()
    this.#renewal = call
    void whenever(call.reply, (reply) => {
      if (reply !== null) this.#renewed(reply, call)
      else if (!call.isAnswered) call.onLateAnswer = (late) => this.#renewed(late, call)
    })
    return call
  }

  /** `null`: it failed, behind its time limit. */
  #renewed(reply: CommandReply | null, call: StoreCall<CommandReply>): void {
    if (this.state === 'ended') return
    if (reply?.ok === true) this.#confirmedAt = Math.max(this.#confirmedAt, call.sentAt)
    else if (reply !== null && !this.#isLocked) this.#leased.renewalRefused(reply.record)
    if (!this.#isOverdue || this.#isPaused || this.#renewal !== call) return
    this.#renewAt = monotonicNow()
    this.onDue(this.#renewAt)
  }

  #schedule(now: number): void {
    const inTime = now < this.#until
    const next = Math.min(
      inTime && this.#renews ? this.#renewAt : Number.POSITIVE_INFINITY,
      this.state === 'held' && !this.#isLocked ? this.#confirmedAt + this.#leaseMs : Number.POSITIVE_INFINITY,
      inTime ? this.#until : Number.POSITIVE_INFINITY,
    )
    if (next < Number.POSITIVE_INFINITY) this.#deadlines.set(this, next)
    else this.#leased.leaseOver()
  }

  #lose(reason: 'lapsed' | 'taken'): void {
    this.state = reason
    this.#leased.leaseLost(reason)
  }
}
