import { monotonicNow } from '../calls/clock.js'
import { type FailureReason, tellNotRun, warnOnce } from '../events/events.js'
import {
  createInFlightRefusal,
  createTransactionMissingRefusal,
  createUnconfirmedRefusal,
  explainNotRun,
  type NotRun,
  type Refused,
  type RunEnd,
  SEND,
} from '../events/refusal.js'
import { effectsInTransactionError, operationTakenError, transactionTimedOutError } from '../misuse.js'
import type { Identity } from '../record/identity.js'
import type { Entry, Fenced, Free } from '../record/looked.js'
import type { Acquired, Answer, CommandReply, IdempotencyRecord } from '../record/record.js'
import { isOpen } from '../record/shown.js'
import type { Unclaimed } from '../store.js'
import type { CoreParts } from './operation.js'
import type { Failure } from './owned-record.js'
import { Run } from './run.js'
import type { LookedKey } from './run-end.js'

const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 2_000

/**
 * A run whose effects are all inside its transaction (`effects: 'in-transaction'`). Nothing is claimed: the key was looked at, and the
 * transaction takes it, does the work and completes the record. So there is no lease, a failure needs no record, and a run that dies
 * leaves nothing. In exchange, nothing that it answers outside of a transaction is sent before the key was looked at once more: a
 * retry that has read its own first attempt's effects must not be refused where that one succeeded.
 */
export class LookedRun extends Run implements LookedKey {
  #seen: string | null = null
  #hasEntered = false
  /** Another attempt has the key: the client gets what the record says. */
  #isRefused = false
  /** The record that the other attempt has completed, once it was seen: it is final. */
  #completed: IdempotencyRecord | undefined = undefined
  /** What its work has written may be committed without a record. */
  #mayHaveCommitted = false
  /** Its transaction may be tried again until then; `undefined`: it has not met another attempt yet. */
  #waitsUntil: number | undefined = undefined
  /** Whether nobody wants its answer any more: then it does not wait for another attempt. */
  readonly #isAbandoned: () => boolean

  constructor(identity: Identity, core: CoreParts, isAbandoned: () => boolean) {
    super(identity, core)
    this.#isAbandoned = isAbandoned
  }

  override begin(free: Acquired, sentAt: number): void {
    this.#seen = (free as Free).seen
    super.begin(free, sentAt)
  }

  /** Told when its transaction enters. */
  protected override tellClaimed(_acquired: unknown): void {}

  /** Nothing is held before a transaction enters, so nothing is renewed. */
  protected override holdKey(): void {
    this.lease.giveUp()
  }

  get #unclaimed(): Unclaimed {
    return this.options.store.unclaimed as Unclaimed
  }

  // --- its transaction

  override get looked(): LookedKey {
    return this
  }

  get entry(): Entry {
    const { token, attempt, options } = this
    const uncertain = this.previousOutcome === 'unknown'
    return { token, attempt, seen: this.#seen, uncertain, idleMs: options.leaseMs }
  }

  override checkEntry(): void {
    super.checkEntry()
    if (this.#isRefused) throw operationTakenError()
    if (this.isOver) throw transactionTimedOutError('The run was over, because `maxRunMs` had passed')
  }

  entered(): void {
    if (this.#hasEntered) return
    this.#hasEntered = true
    super.tellClaimed(this)
    super.holdKey()
  }

  async freed(): Promise<boolean> {
    const { recordKey, fingerprint, identity } = this
    const { duplicates } = this.core
    if (duplicates === undefined) return false
    duplicates.leave(recordKey, this)
    const place = duplicates.join(recordKey, fingerprint, identity.scope)
    if (place === null) return false
    // For all tries together: another attempt may be faster each time.
    this.#waitsUntil ??= Math.min(monotonicNow() + this.options.inFlightWaitMs, this.lease.until)
    const until = this.#waitsUntil
    try {
      while (place.record === undefined && monotonicNow() < until && !this.#isAbandoned()) {
        await place.turn(until - monotonicNow())
        if (place.record !== undefined || !place.asks || this.#isAbandoned()) continue
        const found = await this.#fence()
        if (found?.record?.state === 'completed') place.record = found.record
        else if (found === null || preventing(found.record) !== null) return false
        else if (!found.isTaken) return this.#isAsSeen(found.record)
      }
      this.#completed = place.record
      return false
    } finally {
      duplicates.part(recordKey, identity.scope, place)
    }
  }

  /** A record that has changed since the look would keep each later try out. */
  #isAsSeen(record: IdempotencyRecord | null): boolean {
    const isUnknown = record !== null && isOpen(record)
    return (record?.attempt ?? 0) === this.attempt - 1 && isUnknown === (this.previousOutcome === 'unknown')
  }

  refuse(): void {
    this.#isRefused = true
  }

  endedByWork(): void {
    this.#mayHaveCommitted = true
  }

  /** Compares the record's token as soon as no transaction holds the key: until then the COMMIT may still be carried out. */
  override async outcomeOfCommit(): Promise<'committed' | 'rolled back' | Refused> {
    this.tell('completion_pending')
    const found = await this.#until(
      () => this.#fence(),
      (fenced) => !fenced.isTaken,
    )
    if (found !== null) return found.isOwn ? 'committed' : 'rolled back'
    this.completionGivenUp()
    const refused = createUnconfirmedRefusal(this.options)
    this.settle(refused)
    return refused
  }

  // --- what is for claims

  override mustBeClaimed(call: string): void {
    throw effectsInTransactionError(call)
  }

  override mayHaveEffect(): void {
    this.mustBeClaimed('mayHaveEffect')
  }

  // --- its end without a transaction

  protected override store(_answer: Answer): Promise<RunEnd> {
    if (this.#isRefused) return this.#fenced(null)
    warnOfMissingTransaction()
    return this.#withhold('no_transaction', createTransactionMissingRefusal())
  }

  protected override release(failure: Failure): Promise<RunEnd> {
    return this.#mayHaveCommitted ? this.#withhold('may_have_effect', SEND) : this.#fenced(failure)
  }

  /** Its transaction was rolled back, or there was none, so the key is claimed for it. */
  protected override keep(failure: Answer, mustBeConfirmed: boolean): Promise<RunEnd> {
    return this.#mayHaveCommitted ? this.#withhold('may_have_effect', SEND) : this.#keep(failure, mustBeConfirmed)
  }

  async #keep(failure: Answer, mustBeConfirmed: boolean): Promise<RunEnd> {
    const found = await this.#fence()
    const notRun = this.#whyNotRun(found)
    if (notRun !== null) return this.#settleAs(notRun, found?.record ?? null)
    const begun = await this.core.calls.send('begin', this).whenReplied()
    if (begun === null) return this.#giveUpClaim()
    if (!begun.acquired) return this.#settleAs(explainNotRun(begun.record, this.identity, this.options), begun.record)
    this.attempt = begun.attempt
    this.entered()
    return super.store(failure, mustBeConfirmed)
  }

  /** Whether the key was claimed is unknown, and nothing of this run had an effect: its claim is released after it. */
  #giveUpClaim(): RunEnd {
    void this.#releaseGivenUp()
    return createUnconfirmedRefusal(this.options)
  }

  async #releaseGivenUp(): Promise<void> {
    const { calls } = this.core
    this.failure = { uncertain: false }
    const call = calls.send('release', this)
    if ((await call.whenReplied()) === null) await calls.sendAgain('release', this, call, this.lease.until)
    this.end()
  }

  /** Settles as the record says; where it says nothing, as the handler's `failure` does. */
  async #fenced(failure: Failure | null): Promise<RunEnd> {
    const found = await this.#fence()
    const notRun = this.#whyNotRun(found)
    if (notRun !== null) return this.#settleAs(notRun, found?.record ?? null)
    if (failure !== null) this.tellFailed({ uncertain: false, because: failure.because })
    this.end()
    return SEND
  }

  /** `null`: nothing prevents what the handler has answered from being sent. */
  #whyNotRun(found: Fenced | null): NotRun | null {
    const { options } = this
    if (found === null) return createUnconfirmedRefusal(options)
    const record = preventing(found.record)
    if (!found.isTaken && record !== null) return explainNotRun(record, this.identity, options)
    return found.isTaken || this.#isRefused ? createInFlightRefusal(0, options) : null
  }

  #settleAs(notRun: NotRun, record: IdempotencyRecord | null): RunEnd {
    tellNotRun((event) => this.emit(event), notRun, this.identity, record)
    this.end()
    return notRun
  }

  /** Nobody can see what it did: the outcome becomes unknown, and what is sent is not its success. */
  async #withhold(because: FailureReason, end: RunEnd): Promise<RunEnd> {
    const reply = await this.#sendWithheld()
    const { record } = reply === null || reply.ok ? { record: null } : reply
    const prevents = preventing(record)
    if (prevents !== null) return this.#settleAs(explainNotRun(prevents, this.identity, this.options), prevents)
    if (reply?.ok === true || record !== null) this.#withheld(because)
    else void this.#withholdAgain(because)
    return reply === null ? createUnconfirmedRefusal(this.options) : end
  }

  async #withholdAgain(because: FailureReason): Promise<void> {
    const late = await this.#until(
      () => this.#sendWithheld(),
      (reply) => reply.ok || reply.record !== null,
    )
    if (late?.ok === true) this.#withheld(because)
    else this.end()
  }

  #withheld(because: FailureReason): void {
    this.tellFailed({ uncertain: true, because })
    this.end()
  }

  // --- its commands

  async #fence(): Promise<Fenced | null> {
    // Another duplicate that looks at the key in its transaction holds the lock for an instant, behind which no record is read.
    if (this.#completed !== undefined) return { isTaken: false, record: this.#completed, isOwn: false }
    const { recordKey, token, fingerprint } = this
    const asked = () => this.#unclaimed.fence(recordKey, { token, fingerprint })
    return this.core.calls.ask<Fenced>('fence', this, asked).whenReplied()
  }

  async #sendWithheld(): Promise<CommandReply | null> {
    const { recordKey, token, scope, fingerprint, attempt } = this
    const retentionMs = this.terms.unknownRetentionMs
    const own = { token, scope, fingerprint, attempt, seen: this.#seen, retentionMs }
    const sent = () => this.#unclaimed.withhold(recordKey, own)
    return this.core.calls.ask<CommandReply>('withhold', this, sent).whenReplied()
  }

  /** Sends a command again, with growing pauses, until its reply is final or `maxRunMs` has passed: then `null`. */
  async #until<Reply>(send: () => Promise<Reply | null>, isFinal: (reply: Reply) => boolean): Promise<Reply | null> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const reply = await send()
      if (reply !== null && isFinal(reply)) return reply
      const leftMs = this.lease.until - monotonicNow()
      if (leftMs <= 0) return null
      await new Promise((resolve) => setTimeout(resolve, Math.ceil(Math.min(pauseMs, leftMs))).unref())
    }
  }
}

/** The record, if it keeps this run from what it wants to do: not one that could be taken over. */
function preventing(record: IdempotencyRecord | null): IdempotencyRecord | null {
  const isLive = record?.state === 'in-flight' && record.leaseRemainingMs > 0
  return record?.state === 'completed' || isLive ? record : null
}

/** For developers, also where a listener is: the client is only told that the outcome is unknown. */
function warnOfMissingTransaction(): void {
  warnOnce(
    'ONCE_PER_KEY_TRANSACTION_MISSING',
    "A success was sent outside of a transaction, but with effects: 'in-transaction' all effects are inside one: the client got 500 " +
      'transaction_missing, and the outcome is unknown. Answer inside `store.transaction(context, work)`. If there is nothing to ' +
      'write, give it `{ allowEmpty: true }`. This is printed once.',
  )
}
