import type { CommandSender } from '../calls/store-call.js'
import { getMonotonicMs } from '../calls/timers.js'
import { warnOnce } from '../events/events.js'
import { effectsInTransactionError, operationTakenError, transactionTimedOutError } from '../misuse.js'
import type { Identity } from '../record/identity.js'
import type { Entry, Fenced, Free } from '../record/looked.js'
import type { Acquired, CommandReply, IdempotencyRecord, PreviousOutcome } from '../record/record.js'
import { isOpen } from '../record/shown.js'
import type { Unclaimed } from '../store/store.js'
import type { CoreParts } from './core-parts.js'
import type { UnclaimedKey } from './run-end.js'
import type { RunEffect, RunEvent, RunFacts } from './run-state.js'
import { findPreventing } from './unclaimed-machine.js'

const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 2_000

/** The run of the key. */
interface UnclaimedRun extends CommandSender {
  readonly identity: Identity
  readonly previousOutcome: PreviousOutcome
  readonly isOver: boolean
  readonly lease: { readonly until: number }
  onClaimed(): void
  mergeFacts(facts: Partial<RunFacts>): void
  on(event: RunEvent): void
}

/** The key of a run that claims nothing (`effects: 'in-transaction'`): it was looked at, and the run's transaction takes it. */
export class UnclaimedRunKey implements UnclaimedKey {
  readonly #run: UnclaimedRun
  readonly #core: CoreParts
  /** Whether nobody wants the run's answer any more: then it does not wait for another attempt. */
  readonly #isAbandoned: () => boolean
  /** The state that the look has found, for the store alone. */
  #seen: string | null = null
  #hasEntered = false
  /** The record that the other attempt has completed, once it was seen: it is final. */
  #completed: IdempotencyRecord | undefined = undefined
  /** Its transaction may be tried again until then; `undefined`: it has not met another attempt yet. */
  #waitsUntil: number | undefined = undefined

  constructor(run: UnclaimedRun, core: CoreParts, isAbandoned: () => boolean) {
    this.#run = run
    this.#core = core
    this.#isAbandoned = isAbandoned
  }

  /** The look has shown that the key can be taken. */
  onFoundFree(free: Acquired): void {
    this.#seen = (free as Free).seen
  }

  get entry(): Entry {
    const { token, attempt, previousOutcome } = this.#run
    const { leaseMs } = this.#core.options
    return { token, attempt, seen: this.#seen, uncertain: previousOutcome === 'unknown', idleMs: leaseMs }
  }

  /** @throws IdempotencyError `effects_in_transaction` */
  refuseCall(call: string): never {
    throw effectsInTransactionError(call)
  }

  /** @throws IdempotencyError `operation_taken`, `transaction_timed_out`: nothing was sent. */
  assertMayTransact({ isTaken }: RunFacts): void {
    if (isTaken) throw operationTakenError()
    if (this.#run.isOver) throw transactionTimedOutError('The run was over, because `maxRunMs` had passed')
  }

  enter(): void {
    if (this.#hasEntered) return
    this.#hasEntered = true
    this.#run.onClaimed()
  }

  async waitUntilFree(): Promise<boolean> {
    const { recordKey, fingerprint, identity, lease } = this.#run
    const { duplicates, options } = this.#core
    if (duplicates === undefined) return false
    duplicates.leave(recordKey, this.#run)
    const place = duplicates.join(recordKey, fingerprint, identity.scope)
    if (place === null) return false
    // For all tries together: another attempt may be faster each time.
    this.#waitsUntil ??= Math.min(getMonotonicMs() + options.inFlightWaitMs, lease.until)
    const until = this.#waitsUntil
    try {
      while (place.record === undefined && getMonotonicMs() < until && !this.#isAbandoned()) {
        await place.turn(until - getMonotonicMs())
        if (place.record !== undefined || !place.asks || this.#isAbandoned()) continue
        const found = await this.#fence()
        if (found?.record?.state === 'completed') place.record = found.record
        else if (found === null || findPreventing(found.record) !== null) return false
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
    const { attempt, previousOutcome } = this.#run
    return (record?.attempt ?? 0) === attempt - 1 && isUnknown === (previousOutcome === 'unknown')
  }

  giveUp(): void {
    this.#run.mergeFacts({ isTaken: true })
  }

  // --- its commands

  async send(effect: Extract<RunEffect, { do: 'send begin' | 'send fence' | 'send withhold' }>) {
    const { calls } = this.#core
    switch (effect.do) {
      case 'send begin':
        return this.#run.on({ type: 'claimed', reply: await calls.send('begin', this.#run).waitForReply() })
      case 'send fence': {
        const fence = () => this.#fence()
        const found = effect.isRepeated ? await this.#repeat(fence, ({ isTaken }) => !isTaken) : await fence()
        return this.#run.on({ type: 'fenced', found })
      }
      case 'send withhold': {
        const withhold = () => this.#withhold()
        const isFinal = (reply: CommandReply) => reply.ok || reply.record !== null
        const reply = effect.isRepeated ? await this.#repeat(withhold, isFinal) : await withhold()
        if (reply !== null) return this.#run.on({ type: 'replied', reply })
        return this.#run.on({ type: effect.isRepeated ? 'given up' : 'unanswered' })
      }
    }
  }

  get #commands(): Unclaimed {
    return this.#core.options.store.unclaimed as Unclaimed
  }

  async #fence(): Promise<Fenced | null> {
    // Another duplicate that looks at the key in its transaction holds the lock for an instant, behind which no record is read.
    if (this.#completed !== undefined) return { isTaken: false, record: this.#completed, isOwn: false }
    const { recordKey, token, fingerprint } = this.#run
    const asked = () => this.#commands.fence(recordKey, { token, fingerprint })
    return this.#core.calls.ask<Fenced>('fence', this.#run, asked).waitForReply()
  }

  async #withhold(): Promise<CommandReply | null> {
    const { recordKey, token, scope, fingerprint, attempt } = this.#run
    const retentionMs = this.#run.terms.unknownRetentionMs
    const own = { token, scope, fingerprint, attempt, seen: this.#seen, retentionMs }
    const sent = () => this.#commands.withhold(recordKey, own)
    return this.#core.calls.ask<CommandReply>('withhold', this.#run, sent).waitForReply()
  }

  /** Sends a command again, with growing pauses, until its reply is final or `maxRunMs` has passed: then `null`. */
  async #repeat<Reply>(send: () => Promise<Reply | null>, isFinal: (reply: Reply) => boolean): Promise<Reply | null> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const reply = await send()
      if (reply !== null && isFinal(reply)) return reply
      const leftMs = this.#run.lease.until - getMonotonicMs()
      if (leftMs <= 0) return null
      await new Promise((resolve) => setTimeout(resolve, Math.ceil(Math.min(pauseMs, leftMs))).unref())
    }
  }
}

/** For developers, also where a listener is: the client is only told that the outcome is unknown. */
export function warnOfMissingTransaction(): void {
  warnOnce(
    'ONCE_PER_KEY_TRANSACTION_MISSING',
    "A success was sent outside of a transaction, but with effects: 'in-transaction' all effects are inside one: the client got 500 " +
      'transaction_missing, and the outcome is unknown. Answer inside `store.transaction(context, work)`. If there is nothing to ' +
      'write, give it `{ allowEmpty: true }`. This is printed once.',
  )
}
