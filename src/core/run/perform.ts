import type { CommandSender, StoreCall } from '../calls/store-call.js'
import { keepProcessAlive } from '../calls/timers.js'
import type { IdempotencyError } from '../errors.js'
import { type EngineEvent, reportNotRun } from '../events/events.js'
import {
  createInFlightRefusal,
  createTransactionMissingRefusal,
  createUnconfirmedRefusal,
  explainLostRun,
  explainNotRun,
  type RunEnd,
  SEND,
} from '../events/refusal.js'
import { isEventTraced, traceEvent } from '../events/trace.js'
import { type MaybePromise, whenever } from '../maybe-promise.js'
import { misuseError } from '../misuse.js'
import type { Identity } from '../record/identity.js'
import type { Answer, CommandReply, IdempotencyRecord, PreviousOutcome } from '../record/record.js'
import type { SentOperation } from '../store/store.js'
import type { CoreParts } from './core-parts.js'
import type { Lease } from './lease.js'
import type { AnswerSource } from './run-end.js'
import type { OwnEnd, RunEffect, RunEvent } from './run-state.js'
import { type UnclaimedRunKey, warnOfMissingTransaction } from './unclaimed-key.js'

const CLAIM_REASONS = { none: 'new', failed: 'released', unknown: 'outcome_unknown' } as const

/** A run, as far as its effects need it. */
interface PerformedRun extends CommandSender {
  readonly identity: Identity
  readonly previousOutcome: PreviousOutcome
  readonly lease: Lease
  readonly source: AnswerSource | undefined
  readonly unclaimed: UnclaimedRunKey | undefined
  /** What the next command sends. */
  answer: Answer | null
  failure: SentOperation['failure']
  on(event: RunEvent): void
}

/** How an unconfirmed COMMIT ended; `'unknown'`: `maxRunMs` has passed. */
export type CommitOutcome = 'committed' | 'rolled back' | 'unknown'

/** Performs the effects of a run: sends its commands, reports its events, tells its client, and closes it. */
export class EffectPerformer {
  /** Nothing more is sent for the record. */
  isOver = false
  /** Called once with how an unconfirmed COMMIT ended. */
  onCommitOutcome: ((outcome: CommitOutcome) => void) | undefined = undefined
  readonly #run: PerformedRun
  readonly #core: CoreParts
  /** What is sent again, until the run is over. */
  lastCall: StoreCall<CommandReply> | undefined = undefined
  /** What the client gets, once that is known; and what resolves the promise of whoever waits for it. */
  #told: RunEnd | undefined = undefined
  #later: Promise<RunEnd> | undefined = undefined
  #resolveLater: ((end: RunEnd) => void) | undefined = undefined
  #abort: AbortController | undefined = undefined
  /** Why the handler should stop; the first reason counts. */
  #stopReason: IdempotencyError | undefined = undefined
  /** Nothing is pending, and the last event was reported. */
  #hasEnded = false
  #whenEnded: (() => void)[] | undefined = undefined

  constructor(run: PerformedRun, core: CoreParts) {
    this.#run = run
    this.#core = core
  }

  get signal(): AbortSignal {
    if (!this.isOver) this.#run.lease.check() // After a suspension of the process, sockets may be served before timers.
    this.#abort ??= new AbortController()
    if (this.#stopReason !== undefined && !this.#abort.signal.aborted) this.#abort.abort(this.#stopReason)
    return this.#abort.signal
  }

  stopWork(because: 'run_failed' | 'lease_lost'): void {
    this.#stopReason ??= misuseError(because)
    this.#abort?.abort(this.#stopReason)
  }

  waitForRunEnd(): MaybePromise<RunEnd> {
    if (this.#told !== undefined) return this.#told
    this.#later ??= new Promise((resolve) => {
      this.#resolveLater = resolve
    })
    return this.#later
  }

  waitUntilClosed(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve()
    this.#whenEnded ??= []
    const waiting = this.#whenEnded
    return new Promise((resolve) => waiting.push(resolve))
  }

  emit(event: EngineEvent): void {
    this.#core.emit(event, this.#run.token)
  }

  reportClaim(): void {
    if (!this.#core.isHeard()) return
    const { identity, attempt, previousOutcome } = this.#run
    const { scope, key } = identity
    this.emit({ type: 'claimed', scope, key, attempt, previousOutcome, because: CLAIM_REASONS[previousOutcome] })
  }

  perform(effect: RunEffect) {
    switch (effect.do) {
      case 'send complete':
        this.#run.answer = effect.answer
        return this.#send('complete')
      case 'send release':
        this.#run.failure = effect.failure
        return this.#send('release')
      case 'send again':
        return this.#sendAgain(effect.isAwaited)
      case 'send begin':
      case 'send fence':
      case 'send withhold':
        return void this.#run.unclaimed?.send(effect)
      case 'claim made':
        return this.#run.unclaimed?.enter()
      case 'release':
        return this.#run.on({ type: 'steps over' })
      case 'check lease':
        this.#run.lease.check()
        return this.#run.on({ type: 'lease checked' })
      case 'renew':
        return void this.#run.lease.renewNow().then((reply) => this.#run.on({ type: 'renewed', reply }))
      case 'report':
        return this.#report(effect)
      case 'stop work':
        return this.stopWork(effect.because)
      case 'wake':
        return this.#core.duplicates?.onCompleted(this.#run.recordKey, this.#run, effect.answer)
      case 'free key':
        return this.#core.duplicates?.leave(this.#run.recordKey, this.#run)
      case 'tell':
        return this.#tell(this.#ownEnd(effect.end))
      case 'tell as recorded':
        return this.#tell(explainLostRun(effect.record, this.#run.identity, this.#core.options))
      case 'tell stored':
        return this.#tell({ action: 'replay', answer: effect.answer, isOwn: true })
      case 'tell transaction':
        return this.#tellTransaction(effect.outcome)
      case 'refuse':
        return this.#refuse(effect.because)
      case 'abandon':
        return this.#run.source?.onTimeOver()
      case 'end':
        return this.#close()
    }
  }

  #send(command: 'complete' | 'release'): void {
    const call = this.#core.calls.send(command, this.#run)
    this.lastCall = call
    void whenever(call.waitForReply(), (reply) =>
      this.#run.on(reply === null ? UNANSWERED : { type: 'replied', reply }),
    )
  }

  #sendAgain(isAwaited: boolean): void {
    const call = this.lastCall as StoreCall<CommandReply>
    const late = this.#core.calls.sendAgain(
      call.command as 'complete' | 'release',
      this.#run,
      call,
      this.#run.lease.until,
    )
    if (isAwaited) void keepProcessAlive(late)
    void late.then((reply) => this.#run.on(reply === null ? { type: 'given up' } : { type: 'replied', reply }))
  }

  #ownEnd(end: OwnEnd | 'transaction missing'): RunEnd {
    if (end === 'own') return SEND
    if (end === 'unconfirmed') return createUnconfirmedRefusal(this.#core.options)
    warnOfMissingTransaction()
    return createTransactionMissingRefusal()
  }

  /** Another attempt prevents the answer. */
  #refuse(because: IdempotencyRecord | 'unconfirmed' | 'in flight'): void {
    const { identity } = this.#run
    const { options } = this.#core
    const isRecord = typeof because === 'object'
    const refused = because === 'unconfirmed' ? createUnconfirmedRefusal(options) : createInFlightRefusal(0, options)
    const notRun = isRecord ? explainNotRun(because, identity, options) : refused
    reportNotRun((event) => this.emit(event), notRun, identity, isRecord ? because : null)
    this.#close()
    this.#tell(notRun)
  }

  #tell(end: RunEnd): void {
    if (this.#told !== undefined) return
    this.#told = end
    this.#resolveLater?.(end)
    // An application may hold the handler's context, and all of this, for long.
    this.#resolveLater = undefined
    this.#later = undefined
  }

  #tellTransaction(outcome: CommitOutcome): void {
    const tell = this.onCommitOutcome
    this.onCommitOutcome = undefined
    tell?.(outcome)
  }

  /** Called after the last event of the run; waits for the event of a renewal that is still unanswered. */
  #close(): void {
    if (this.isOver) return
    this.isOver = true
    const { identity, attempt, token } = this.#run
    if (isEventTraced()) traceEvent({ type: 'run_ended', scope: identity.scope, key: identity.key, attempt }, token)
    this.#core.duplicates?.leave(this.#run.recordKey, this.#run)
    const renewal = this.#run.lease.end()
    if (renewal === undefined || renewal.reply !== undefined) this.#finish()
    else void whenever(renewal.waitForReply(), () => this.#finish())
  }

  #finish(): void {
    this.#hasEnded = true
    this.#core.activity.end()
    if (this.#whenEnded !== undefined) for (const resolve of this.#whenEnded) resolve()
  }

  // --- what it reports

  #report(effect: Extract<RunEffect, { do: 'report' }>) {
    if (effect.type === 'completed' && !this.#core.isHeard()) return
    const { identity, attempt } = this.#run
    const about = { scope: identity.scope, key: identity.key, attempt }
    switch (effect.type) {
      case 'completed': {
        const { status, body } = effect.answer
        return this.emit({ type: 'completed', ...about, status, answerKept: body !== null })
      }
      case 'failed':
        return this.emit({ type: 'failed', ...about, ...effect.failure })
      case 'lease_lost':
        return this.emit({ type: 'lease_lost', ...about, reason: effect.reason })
      default:
        return this.emit({ type: effect.type, ...about })
    }
  }
}

const UNANSWERED: RunEvent = { type: 'unanswered' }
