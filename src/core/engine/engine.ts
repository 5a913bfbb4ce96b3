import { StoreCalls } from '../calls/store-calls.js'
import { Activity, getMonotonicMs } from '../calls/timers.js'
import { guardListener, reportNotRun, warnUnheard } from '../events/events.js'
import { createUnavailableRefusal, explainNotRun, isInFlight, type NotRun } from '../events/refusal.js'
import { isClaimTraced, isEventTraced, publishBefore, traceClaim, traceStore } from '../events/trace.js'
import { type MaybePromise, whenever } from '../maybe-promise.js'
import { OperatorCalls, type RecordOperator } from '../operator/operator-calls.js'
import { type EngineOptions, resolveEngineOptions } from '../options/engine-options.js'
import type { Identity } from '../record/identity.js'
import type { IdempotencyRecord } from '../record/record.js'
import type { CoreParts } from '../run/core-parts.js'
import { Duplicates } from '../run/duplicates.js'
import { Run } from '../run/run.js'
import { type Claim, type Claimed, Claims } from './claims.js'
import { assertFirstSent, findLateOutcome, isLate } from './late-retry.js'
import { type WaitResult, waitForOwner } from './wait-for-owner.js'

/** Runs operations once. */
export interface OperationEngine extends RecordOperator {
  /**
   * Claims an operation: it must run, has already run, or is refused. Synchronous if the store is.
   *
   * Scope and key must be well-formed strings (`isWellFormed`); nothing else is checked here. `isAbandoned` is called
   * while a duplicate waits (`inFlightWaitMs`): whether nobody wants the answer any more.
   *
   * @throws IdempotencyError `command_missing`, for your own store without `inspect`, and `arguments_invalid`, for an invalid
   * date: only if the identity has `firstSent`. Nothing was sent to the store.
   */
  claim(identity: Identity, isAbandoned?: () => boolean): MaybePromise<Claimed>
  /** Counts work as in progress until it has ended: `idle` waits for it too. */
  during<Result>(work: () => MaybePromise<Result>): MaybePromise<Result>
  /** Resolves when no run is active and no completion is pending, after their last events. */
  idle(): Promise<void>
}

/**
 * The library without requests: claims operations by their identity, and keeps their records.
 *
 * `namespace` is a word that you choose, without a colon, a percent sign or a blank. It separates your operations from
 * requests (which have none), from webhook events (`webhook`), and from those with any other word, even with the same
 * scopes, keys and store. `fingerprint` is `fingerprintOf` of everything that must be the same in two operations with
 * one key.
 *
 * @example
 * const engine = createOperationEngine({ store })
 * const identity = { namespace: 'invoices', scope: 'acme', key: 'in_7', fingerprint: fingerprintOf(invoice) }
 * const claimed = await engine.claim(identity)
 * if (claimed.action === 'execute') {
 *   const receipt = await send(invoice, claimed.run.context)
 *   await claimed.run.complete({ status: 200, statusMessage: '', headers: [], body: Buffer.from(receipt) })
 * }
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function createOperationEngine(given: EngineOptions): OperationEngine {
  return new RecordEngine(given)
}

const isNeverAbandoned = () => false
const isAlwaysHeard = () => true

class RecordEngine implements OperationEngine {
  readonly #core: CoreParts
  readonly #claims: Claims
  #operator: RecordOperator | undefined

  constructor(given: EngineOptions) {
    const options = resolveEngineOptions(given)
    const { store, inFlightWaitMs, onEvent } = options
    const heard = guardListener(onEvent ?? warnUnheard)
    const emit = publishBefore(heard)
    const calls = new StoreCalls(options, emit)
    const duplicates = inFlightWaitMs > 0 ? new Duplicates() : undefined
    const { leaseMs, maxRunMs, retentionMs, unknownRetentionMs, unknownOutcome } = options
    const terms = { leaseMs, retentionMs, unknownRetentionMs, failedMs: maxRunMs + leaseMs, unknownOutcome }
    const isHeard = onEvent === undefined ? isEventTraced : isAlwaysHeard
    const activity = new Activity()
    this.#core = { options, calls, terms, activity, emit, isHeard, duplicates }
    this.#claims = new Claims(this.#core)
    traceStore(store)
    store.observe?.(heard, options.storeTimeoutMs)
  }

  claim(identity: Identity, isAbandoned = isNeverAbandoned): MaybePromise<Claimed> {
    if (identity.firstSent !== undefined) assertFirstSent(identity.firstSent, this.#core.options)
    const run = new Run(identity, this.#core, this.#claims.areLooks ? isAbandoned : undefined)
    return isClaimTraced()
      ? traceClaim(identity, run.token, () => this.#claim(run, isAbandoned))
      : this.#claim(run, isAbandoned)
  }

  #claim(run: Run, isAbandoned: () => boolean): MaybePromise<Claimed> {
    const { duplicates, options } = this.#core
    if (isLate(run.identity, options)) return this.#look(run)
    const now = getMonotonicMs()
    if (duplicates?.hasRun(run.recordKey, run.identity.fingerprint))
      return this.#wait(run, isAbandoned, null, now, duplicates)
    const claim = this.#claims.send(run, now)
    if (claim === null || claim.reply !== undefined) return this.#onClaimReply(run, claim, isAbandoned)
    return this.during(() => whenever(claim.waitForReply(), () => this.#onClaimReply(run, claim, isAbandoned)))
  }

  /** Its record may be gone, so it never claims. */
  #look(run: Run): MaybePromise<Claimed> {
    return this.during(() =>
      whenever(findLateOutcome(run, this.#core), ({ notRun, record }) => this.#tell(notRun, run.identity, record)),
    )
  }

  /** Interprets the store's first reply; with `inFlightWaitMs`, a duplicate waits for its owner's answer. */
  #onClaimReply(run: Run, claim: Claim | null, isAbandoned: () => boolean): MaybePromise<Claimed> {
    const { options, duplicates } = this.#core
    const reply = claim && this.#claims.replyTo(claim)
    if (claim === null || reply === null) {
      if (options.storeFailure === 'runUnprotected') return this.#runUnprotected(run, claim?.sentAt ?? getMonotonicMs())
      this.#claims.giveUp(run, claim)
      return createUnavailableRefusal(options)
    }
    if (reply.acquired) {
      run.begin(reply, claim.sentAt)
      return { action: 'execute', run }
    }
    const notRun = explainNotRun(reply.record, run.identity, options)
    const waits = duplicates !== undefined && isInFlight(notRun) && !isAbandoned()
    return waits
      ? this.#wait(run, isAbandoned, reply.record, claim.sentAt, duplicates)
      : this.#tell(notRun, run.identity, reply.record)
  }

  /** Never runs unprotected, because the owner is known to run. */
  #wait(
    run: Run,
    isAbandoned: () => boolean,
    record: IdempotencyRecord | null,
    since: number,
    duplicates: Duplicates,
  ): MaybePromise<Claimed> {
    const finish = (waited: WaitResult): Claimed => {
      switch (waited.kind) {
        case 'acquired':
          run.begin(waited.reply, waited.sentAt)
          return { action: 'execute', run }
        case 'told':
          return this.#tell(waited.notRun, run.identity, waited.record)
        case 'given up':
          return waited.notRun
      }
    }
    const duplicate = { operation: run, isAbandoned, record, since }
    return this.during(() => waitForOwner(duplicate, duplicates, this.#claims, this.#core.options, finish))
  }

  /** Whether the claim was made is unknown, and the options say to run anyway. */
  #runUnprotected(run: Run, sentAt: number): Claimed {
    const { scope, key } = run.identity
    this.#core.emit({ type: 'unprotected', scope, key }, run.token)
    run.beginUnprotected(sentAt)
    return { action: 'execute', run }
  }

  #tell(notRun: NotRun, identity: Identity, record: IdempotencyRecord | null): NotRun {
    const { emit, isHeard } = this.#core
    if (isHeard()) reportNotRun(emit, notRun, identity, record)
    return notRun
  }

  during<Result>(work: () => MaybePromise<Result>): MaybePromise<Result> {
    const { activity } = this.#core
    activity.start()
    let result: MaybePromise<Result>
    try {
      result = work()
    } catch (error) {
      activity.end()
      throw error
    }
    if (!(result instanceof Promise)) {
      activity.end()
      return result
    }
    return result.finally(() => activity.end())
  }

  idle(): Promise<void> {
    return this.#core.activity.waitUntilIdle()
  }

  /** Made when first used: requests do without it. */
  #getOperator(): RecordOperator {
    this.#operator ??= new OperatorCalls(this.#core)
    return this.#operator
  }

  readonly inspect: RecordOperator['inspect'] = (name) => this.#getOperator().inspect(name)
  readonly resolve: RecordOperator['resolve'] = (name, attempt, as) => this.#getOperator().resolve(name, attempt, as)
  readonly unknown: RecordOperator['unknown'] = () => this.#getOperator().unknown()
  readonly listScopeRecords: RecordOperator['listScopeRecords'] = (of) => this.#getOperator().listScopeRecords(of)
  readonly eraseScopeAnswers: RecordOperator['eraseScopeAnswers'] = (of, options) =>
    this.#getOperator().eraseScopeAnswers(of, options)
  readonly forget: RecordOperator['forget'] = (name, record, options) =>
    this.#getOperator().forget(name, record, options)
}
