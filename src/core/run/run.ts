import type { CommandSender, StoreCall } from '../calls/store-call.js'
import { getMonotonicMs } from '../calls/timers.js'
import type { FailureReason } from '../events/events.js'
import type { RunEnd } from '../events/refusal.js'
import type { MaybePromise } from '../maybe-promise.js'
import { misuseError, transactionLateError } from '../misuse.js'
import type { ResolvedEngineOptions } from '../options/engine-options.js'
import { buildStorageKey, buildStorageScope, type Identity, SINGLE_TENANT } from '../record/identity.js'
import type { Acquired, Answer, CommandReply, IdempotencyRecord, PreviousOutcome } from '../record/record.js'
import { createToken } from '../record/token.js'
import type { SentOperation, SentTerms } from '../store/store.js'
import { HandlerContext } from './context.js'
import type { CoreParts } from './core-parts.js'
import { Lease, type LeaseOwner } from './lease.js'
import { type CommitOutcome, EffectPerformer } from './perform.js'
import type { AnswerSource, ClaimedRun, OpenTransaction } from './run-end.js'
import { isAnothers, next } from './run-machine.js'
import {
  CLAIMING,
  type FailureKind,
  type LeaseState,
  type RunEvent,
  type RunFacts,
  type RunState,
} from './run-state.js'
import { type ResumedStep, type RunOfSteps, type StepInHand, type TransactionStep, warnUnawaitedStep } from './step.js'
import { Steps } from './steps.js'
import { UnclaimedRunKey } from './unclaimed-key.js'
import { nextUnclaimed } from './unclaimed-machine.js'

/**
 * One run of an operation, from its claim to its end. What each event does to it is in `run-machine.ts`, and in `unclaimed-machine.ts` for
 * a run that claims nothing. `perform.ts` performs the effects. Methods are on the prototype: functions of each run would keep it, and
 * everything that they reference, in V8's old space.
 */
export class Run implements ClaimedRun, CommandSender, RunOfSteps, LeaseOwner {
  readonly identity: Identity
  readonly recordKey: string
  readonly token: string
  readonly scope: string
  /** What the last command has sent. */
  answer: Answer | null = null
  failure: SentOperation['failure'] = null
  previousOutcome: PreviousOutcome = 'none'
  /** The context that the handler receives; made after its claim. */
  context!: HandlerContext
  /** Made when it begins, as what performs its effects. */
  lease!: Lease
  source: AnswerSource | undefined = undefined
  readonly unclaimed: UnclaimedRunKey | undefined
  readonly #core: CoreParts
  #performer!: EffectPerformer
  #state: RunState = CLAIMING
  /** Made with its first step: a run without steps pays nothing for them. */
  #steps: Steps | undefined = undefined
  /** The open transaction: ends are offered to it. */
  #transaction: OpenTransaction | undefined = undefined

  /** `isAbandoned`: only where nothing is claimed: whether nobody wants its answer any more. */
  constructor(identity: Identity, core: CoreParts, isAbandoned?: () => boolean) {
    this.identity = identity
    this.#core = core
    const scope = buildStorageScope(identity)
    this.scope = identity.isOnlyScope === true ? SINGLE_TENANT : scope
    this.recordKey = buildStorageKey(identity, scope)
    this.token = createToken()
    this.unclaimed = isAbandoned === undefined ? undefined : new UnclaimedRunKey(this, core, isAbandoned)
  }

  // --- its beginning

  /** Its claim was sent at this time, and acquired the key. */
  begin(acquired: Acquired, sentAt: number): void {
    const { attempt, previousOutcome, steps } = acquired
    this.previousOutcome = previousOutcome
    this.unclaimed?.onFoundFree(acquired)
    if (steps !== undefined) this.#steps = new Steps(this, this.#core, steps)
    this.#begin(attempt, previousOutcome === 'unknown', sentAt)
  }

  /** Whether it was claimed is unknown, and it runs anyway. */
  beginUnprotected(sentAt: number): void {
    this.previousOutcome = 'unknown'
    this.#begin(0, false, sentAt)
  }

  #begin(attempt: number, isEarlierUnknown: boolean, sentAt: number): void {
    this.#performer = new EffectPerformer(this, this.#core)
    const isDeclared = this.options.effects === 'declared'
    const facts = { ...CLAIMING.facts, attempt, isEarlierUnknown, isDeclared }
    this.#state = { phase: 'running', lease: this.unclaimed === undefined ? 'held' : 'gone', facts, byHand: null }
    if (attempt > 0 && this.unclaimed === undefined) this.onClaimed()
    this.lease = new Lease(this, this.#core, sentAt, attempt > 0)
    this.#core.activity.start()
    this.context = new HandlerContext(this)
  }

  /** By its claim, or by its transaction: from now on duplicates wait for this run. */
  onClaimed(): void {
    this.#performer.reportClaim()
    this.#core.duplicates?.enter(this.recordKey, this)
  }

  // --- what it is

  get attempt(): number {
    return this.#state.facts.attempt
  }

  get fingerprint(): string {
    return this.identity.fingerprint
  }

  get terms(): SentTerms {
    return this.#core.terms
  }

  get options(): ResolvedEngineOptions {
    return this.#core.options
  }

  get isProtected(): boolean {
    return this.attempt > 0
  }

  /** As it is sent. */
  get uncertain(): boolean {
    return this.#state.facts.isEarlierUnknown || this.#state.facts.hasStep
  }

  get isUncertain(): boolean {
    return this.uncertain || this.#state.facts.mayHaveEffect
  }

  get isEnding(): boolean {
    return this.#state.phase !== 'running'
  }

  get hasEnded(): boolean {
    return this.isEnding && this.isOver
  }

  /** Nothing more is sent for its record. */
  get isOver(): boolean {
    return this.#performer.isOver
  }

  get leaseState(): LeaseState {
    return this.#state.lease
  }

  // --- for the handler

  /** Any failure from now on leaves the outcome unknown. */
  mayHaveEffect(): void {
    this.assertClaimed('mayHaveEffect')
    this.mergeFacts({ mayHaveEffect: true })
  }

  get signal(): AbortSignal {
    return this.#performer.signal
  }

  // --- its end

  complete(answer: Answer, mustBeConfirmed = this.#withholds): MaybePromise<RunEnd> {
    if (this.#transaction !== undefined) return this.#transaction.offer({ answer })
    if (this.isEnding) return this.#performer.waitForRunEnd()
    for (const label of this.#steps?.listRunningLabels() ?? []) warnUnawaitedStep(label)
    return this.#end({ type: 'answered', answer, mustBeConfirmed })
  }

  fail(how: FailureKind, because: FailureReason, kept?: Answer, isWithdrawn = false): MaybePromise<RunEnd> {
    if (this.#transaction !== undefined) return this.#transaction.offer({ answer: null, how, because, kept })
    if (this.isEnding) return this.#performer.waitForRunEnd()
    const isInStep = this.#steps?.areSettled === false && getMonotonicMs() < this.lease.until
    if (isInStep) this.#steps?.callWhenSettled(() => this.on({ type: 'steps over' }))
    const keptFailure = kept === undefined ? null : { answer: kept, mustBeConfirmed: this.#withholds }
    return this.#end({ type: 'failed', how, because, kept: keptFailure, isWithdrawn, isInStep })
  }

  /** Ends the run as a failure in place of its answer, which may be untrue: whoever answers is told to retry. */
  withdraw(): MaybePromise<RunEnd> {
    return this.fail('perhaps', 'no_answer', undefined, true)
  }

  /** Where no claim protects the run, a client that is told to retry would run it again, each time. */
  get #withholds(): boolean {
    return this.isProtected && this.options.unconfirmedSuccess === 'withhold'
  }

  #end(event: RunEvent): MaybePromise<RunEnd> {
    const isByHand = this.#isByHand
    this.on(event)
    const end = this.#performer.waitForRunEnd()
    return isByHand ? Promise.resolve(end) : end // The application may commit in this very turn: nothing is sent before.
  }

  ended(): Promise<void> {
    return this.#performer.waitUntilClosed()
  }

  // --- in a transaction

  /** An open transaction will end with a failure: its work should stop. */
  stopWork(): void {
    this.#performer.stopWork('run_failed')
  }

  get isInTransaction(): boolean {
    return this.#transaction !== undefined
  }

  get holdsTransaction(): boolean {
    return this.#transaction?.isLeftBehind === false
  }

  /** @throws IdempotencyError `effects_in_transaction`: `call` is for runs that were claimed. */
  assertClaimed(call: string): void {
    this.unclaimed?.refuseCall(call)
  }

  /** @throws IdempotencyError `transaction_nested`, `transaction_committed`, `transaction_late`: nothing was sent. */
  assertMayTransact(): void {
    if (this.#isByHand) throw misuseError('transaction_committed')
    this.assertMayCommit()
    this.unclaimed?.assertMayTransact(this.#state.facts)
  }

  /** For a completion by hand, which may be repeated: the application may have rolled its first transaction back. */
  assertMayCommit(): void {
    if (this.#transaction !== undefined) throw misuseError('transaction_nested')
    if (this.#state.phase === 'over' && this.#state.how === 'committed') throw misuseError('transaction_committed')
    if (this.isEnding) throw transactionLateError()
  }

  /** The record was completed inside the application's transaction: whether that was committed is checked at the end. */
  get #isByHand(): boolean {
    const state = this.#state
    return (
      (state.phase === 'running' && state.byHand !== null) ||
      (state.phase === 'verifying' && state.isByHand) ||
      (state.phase === 'over' && state.how === 'by hand')
    )
  }

  /** The work has ended its transaction itself: what it has written may be committed. */
  onEndedByWork(): void {
    this.mergeFacts(this.unclaimed === undefined ? { mayHaveEffect: true } : { mayBeCommitted: true })
  }

  /** Resolves when the work that an earlier transaction left behind has settled; `undefined`: there is none. */
  follow(): Promise<void> | undefined {
    return this.#transaction?.follow()
  }

  enter(transaction: OpenTransaction): void {
    this.#transaction = transaction
  }

  leave(): void {
    this.#transaction = undefined
  }

  commit(answer: Answer): MaybePromise<RunEnd> {
    return this.#end({ type: 'committed', answer })
  }

  /** Finds out how an unconfirmed COMMIT ended. If that stays unknown, the run is over. */
  findCommitOutcome(answer: Answer): Promise<CommitOutcome> {
    if (this.isEnding) return Promise.resolve('unknown')
    return new Promise((resolve) => {
      this.#performer.onCommitOutcome = resolve
      this.on({ type: 'commit unconfirmed', answer })
    })
  }

  /** With this answer, inside a transaction of the application. */
  completeByHand(answer: Answer): void {
    this.lease.lock()
    this.on({ type: 'completed by hand', answer })
  }

  /** The application's transaction was refused. */
  refuseByHand(): void {
    if (!this.#isByHand) this.lease.resume() // Otherwise an earlier one may be open or committed.
  }

  // --- its lease

  renew(): StoreCall<CommandReply> {
    return this.#core.calls.sendInBackground('renew', this)
  }

  loseLease(reason: 'lapsed' | 'taken'): void {
    this.on({ type: 'lease lost', reason })
  }

  onRenewalRefused(record: IdempotencyRecord | null): void {
    // After the end was sent, a stale renewal may mean that it arrived: its own reply decides.
    if (!this.isEnding && isAnothers(this.#state, record)) this.loseLease('taken')
  }

  onRestored(): void {
    this.#steps?.resendChanges()
  }

  onTimeOver(): void {
    this.on({ type: 'steps over' })
  }

  onLeaseOver(): void {
    if (this.#transaction?.isCompleting !== true) this.on({ type: 'lease over' })
  }

  // --- its steps

  runStep(label: string, work: (step: StepInHand) => unknown, options: unknown): Promise<unknown> {
    this.#steps ??= new Steps(this, this.#core)
    return this.#steps.runStep(label, work, options)
  }

  beginStepInTransaction(label: string, work: unknown, options: unknown): TransactionStep | ResumedStep {
    this.#steps ??= new Steps(this, this.#core)
    return this.#steps.beginInTransaction(label, work, options)
  }

  reportStep(type: 'step_done' | 'step_resumed' | 'step_pending', label: string): void {
    const { scope, key } = this.identity
    this.#performer.emit({ type, scope, key, attempt: this.attempt, label })
  }

  mergeFacts(facts: Partial<RunFacts>): void {
    this.on({ type: 'known', facts })
  }

  // --- what happens to it

  on(event: RunEvent): void {
    const { state, effects } =
      this.unclaimed === undefined ? next(this.#state, event) : nextUnclaimed(this.#state, event)
    this.#state = state
    // The handler's context may be held for long, and the answer with it.
    if (state.phase === 'over') {
      this.answer = null
      this.#performer.lastCall = undefined
    }
    for (const effect of effects) this.#performer.perform(effect)
  }
}
