import type { StoreCall } from '../calls/store-call.js'
import type { SentStep } from '../calls/store-calls.js'
import { keepProcessAlive } from '../calls/timers.js'
import { isCertainFailure } from '../errors.js'
import {
  commandMissingError,
  misuseError,
  stepLimitError,
  stepNotKeptError,
  stepRepeatedError,
  stepStoreFailedError,
} from '../misuse.js'
import { deriveKey } from '../record/identity.js'
import type { CommandReply, Step, StepChange } from '../record/record.js'
import { type Store, toKeptResult, toShownResult } from '../store/store.js'
import type { CoreParts } from './core-parts.js'
import {
  type CheckedStepArguments,
  countBegunSteps,
  parseStepArguments,
  type ResumedStep,
  type RunOfSteps,
  type StepCodec,
  type StepInHand,
  type StepResult,
  StepWork,
  type TransactionStep,
  toSentStep,
} from './step.js'

/**
 * - `free`: nobody has begun it, or each beginning was taken back.
 * - `running`: this run is recording its beginning, or calls its work.
 * - `begun`: it was begun, and has left no result.
 * - `recorded`: an earlier attempt has recorded its result.
 * - `done`: it has succeeded in this run.
 */
type StepState = 'free' | 'running' | 'begun' | 'recorded' | 'done'

interface KnownStep {
  state: StepState
  /** Its last change, of this run or an earlier one: sent again if the store has lost the record. */
  change: StepChange | undefined
  readonly result: Uint8Array | null
}

const MOST_STEPS = 100

/** The steps of one run. Made with its first step, or where earlier attempts have recorded some. */
export class Steps {
  readonly #run: RunOfSteps
  readonly #core: CoreParts
  readonly #known = new Map<string, KnownStep>()
  #order = 0
  /** Results that are on their way to the store. */
  readonly #onTheirWay = new Set<Promise<unknown>>()
  /** `maxRunMs` was over before a result was confirmed: nothing tries to record it any more. */
  #hasGivenUp = false
  #running = 0
  /** A step is in a transaction, or waits for one. */
  #isInside = false
  /** How many have begun, and were not taken back. */
  #begun = 0
  #whenSettled: (() => void) | undefined

  constructor(run: RunOfSteps, core: CoreParts, recorded: readonly Step[] = []) {
    this.#run = run
    this.#core = core
    for (const step of recorded) {
      const state = step.state === 'done' ? 'recorded' : 'begun'
      this.#known.set(step.label, { state, change: { ...step, order: 0 }, result: step.result })
    }
  }

  get areSettled(): boolean {
    return this.#running === 0 && this.#onTheirWay.size === 0
  }

  callWhenSettled(then: () => void): void {
    this.#whenSettled = then
  }

  listRunningLabels(): readonly string[] {
    if (this.#running === 0) return []
    return [...this.#known].filter(([, { state }]) => state === 'running').map(([label]) => label)
  }

  async runStep(label: string, work: (step: StepInHand) => unknown, options: unknown): Promise<unknown> {
    const given = parseStepArguments(label, work, options)
    const known = this.#prepareStep(label)
    if (known.state === 'recorded') return this.#resume(label, known, given.codec)
    const previousOutcome = known.state === 'begun' ? 'unknown' : 'none'
    const before = known.state
    const around = StepWork.findCurrent()
    known.state = 'running'
    this.#running++
    countBegunSteps(around, 1)
    try {
      await this.#recordBeginning(label, known)
    } catch (error) {
      known.state = before
      countBegunSteps(around, -1)
      this.#onStepSettled()
      throw error
    }
    // Without a record nobody knows what earlier attempts have begun.
    return this.#call(label, known, given, this.#run.isProtected ? previousOutcome : 'unknown')
  }

  /** A step whose result commits in a transaction, without a mark before: its beginning needs no command. */
  beginInTransaction(label: string, work: unknown, options: unknown): TransactionStep | ResumedStep {
    const { codec } = parseStepArguments(label, work, options)
    const known = this.#prepareStep(label, true)
    if (known.state === 'recorded') return { recorded: this.#resume(label, known, codec) }
    return this.#createTransactionStep(label, known, codec)
  }

  #createTransactionStep(label: string, known: KnownStep, codec: StepCodec): TransactionStep {
    const { recordKey, fingerprint } = this.#run
    const of = { recordKey, fingerprint, label }
    const before = known.state
    const around = StepWork.findCurrent()
    let value: unknown
    let wasFound = false
    known.state = 'running'
    this.#running++
    countBegunSteps(around, 1)
    this.#isInside = true
    return {
      ready: () => (this.#areConfirmed ? undefined : this.#waitForConfirmations()),
      found: ({ result }) => {
        if (result === null) throw stepNotKeptError(label)
        wasFound = true
        value = codec.decodeResult(toShownResult(this.#store, of, result))
      },
      made: (returned) => {
        const encoded = codec.encodeResult(returned)
        wasFound = false
        value = encoded.value
        const isKept = encoded.bytes.byteLength <= this.#core.options.maxStepBytes
        const result = isKept ? toKeptResult(this.#store, of, encoded.bytes) : null
        return { label, order: ++this.#order, state: 'done', result }
      },
      over: (end) => {
        this.#isInside = false
        known.state = { committed: 'done', unknown: 'begun', 'rolled back': before }[end] as StepState
        if (end === 'committed') this.#run.reportStep(wasFound ? 'step_resumed' : 'step_done', label)
        if (end === 'rolled back') countBegunSteps(around, -1)
        else this.#count(1)
        this.#onStepSettled()
      },
      result: () => value,
    }
  }

  /** @throws IdempotencyError for misuse, and `lease_lost`: nothing was sent. */
  #prepareStep(label: string, isInside = false): KnownStep {
    this.#run.assertClaimed('step')
    if (this.#run.holdsTransaction || this.#isInside) throw misuseError('step_in_transaction')
    if (!isInside && this.#run.isEnding) throw misuseError('step_late')
    const known = this.#known.get(label)
    if (known?.state === 'running' || known?.state === 'done') throw stepRepeatedError(label)
    if (isInside) this.#run.assertMayTransact()
    else if (!this.#run.lease.check()) throw misuseError('lease_lost')
    if (!isInside && this.#store.step === undefined) throw commandMissingError('step')
    if (known !== undefined) return known
    if (this.#known.size >= MOST_STEPS) throw stepLimitError(MOST_STEPS)
    const step: KnownStep = { state: 'free', change: undefined, result: null }
    this.#known.set(label, step)
    return step
  }

  /** Whether everything that this run has said of its steps is recorded. */
  get #areConfirmed(): boolean {
    return this.#onTheirWay.size === 0 && !this.#hasGivenUp
  }

  get #store(): Store {
    return this.#core.options.store
  }

  #resume(label: string, known: KnownStep, codec: StepCodec): unknown {
    if (known.result === null) throw stepNotKeptError(label)
    const result = codec.decodeResult(known.result)
    known.state = 'done'
    this.#run.reportStep('step_resumed', label)
    return result
  }

  async #recordBeginning(label: string, known: KnownStep): Promise<void> {
    if (!this.#run.isProtected) return
    if (!this.#areConfirmed) await this.#waitForConfirmations()
    const reply = await this.#send(label, 'begun', null, known)
    if (reply === null) throw stepStoreFailedError()
    if (this.#run.isEnding) throw misuseError('step_late') // First: its own end has ended the lease, too.
    if (!reply.ok || !this.#run.lease.check()) throw misuseError('lease_lost')
  }

  /**
   * Waits for the results that are on their way: a later step must not be recorded over an earlier one that is not.
   *
   * @throws IdempotencyError `store_failed`
   */
  async #waitForConfirmations(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const inTime = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, this.#core.options.storeTimeoutMs, 'late').unref()
    })
    // One that was not confirmed in time is sent again, and is still on its way then.
    let first: unknown
    while (first !== 'late' && this.#onTheirWay.size > 0) {
      first = await keepProcessAlive(Promise.race([Promise.all(this.#onTheirWay), inTime]))
    }
    clearTimeout(timer)
    if (first === 'late' || this.#hasGivenUp) throw stepStoreFailedError()
    if (!this.#run.lease.check()) throw misuseError(this.#run.isEnding ? 'step_late' : 'lease_lost')
  }

  async #call(
    label: string,
    known: KnownStep,
    { work, codec }: CheckedStepArguments,
    previousOutcome: 'none' | 'unknown',
  ): Promise<unknown> {
    const inside = new StepWork()
    this.#count(1)
    let value: unknown
    let encoded: StepResult
    try {
      const step = { key: deriveKey(this.#run.identity, label), label, previousOutcome, signal: this.#run.signal }
      value = await inside.call(() => work(step))
      encoded = codec.encodeResult(value)
    } catch (error) {
      const isAlone = inside.begun === 0
      if (isCertainFailure(error) && previousOutcome === 'none' && isAlone) await this.#takeBack(label, known, inside)
      else known.state = 'begun'
      this.#onStepSettled()
      throw error
    }
    known.state = 'done'
    try {
      await this.#recordResult(label, known, encoded)
    } finally {
      this.#onStepSettled()
    }
    return encoded.value
  }

  async #takeBack(label: string, known: KnownStep, { around }: StepWork): Promise<void> {
    this.#count(-1)
    countBegunSteps(around, -1)
    if (this.#isRecorded) await this.#send(label, 'undone', null, known)
    known.state = 'free'
  }

  /** A step has begun, or was taken back. */
  #count(by: 1 | -1): void {
    this.#begun += by
    this.#run.mergeFacts({ hasStep: this.#begun > 0 })
  }

  get #isRecorded(): boolean {
    return this.#run.isProtected && !this.#run.hasEnded
  }

  async #recordResult(label: string, known: KnownStep, { bytes }: StepResult): Promise<void> {
    if (!this.#isRecorded) return
    const kept = bytes.byteLength > this.#core.options.maxStepBytes ? null : bytes
    const reply = await this.#send(label, 'done', kept, known)
    if (reply?.ok === true) this.#run.reportStep('step_done', label)
  }

  /** `null`: no reply in time; what is no beginning is then sent again, in the background. */
  async #send(
    label: string,
    state: StepChange['state'],
    result: Uint8Array | null,
    known: KnownStep,
  ): Promise<CommandReply | null> {
    const run = this.#run
    const { calls } = this.#core
    const isRepeated = state !== 'begun'
    const sent = toSentStep(run, { label, order: ++this.#order, state, result }, this.#begun > 0)
    known.change = sent.step // Also a beginning: its mark may be lost with the record before its reply is here.
    const call = calls.send('step', sent)
    const onItsWay = Promise.resolve(call.waitForReply())
    if (isRepeated) this.#onTheirWay.add(onItsWay)
    const reply = await onItsWay
    if (reply === null && isRepeated) this.#sendAgain(sent, call)
    // Nobody waits for a late mark, but it may have restored the record.
    if (reply === null && !isRepeated) call.onLateReply = (late) => late && this.#onReply(late, call.sentAt, sent.step)
    if (isRepeated) this.#onTheirWay.delete(onItsWay)
    if (reply !== null) this.#onReply(reply, call.sentAt, sent.step)
    return reply
  }

  #sendAgain(sent: SentStep, call: StoreCall<CommandReply>): void {
    const { label } = sent.step
    if (sent.step.state === 'done') this.#run.reportStep('step_pending', label)
    const late = this.#core.calls.sendAgain('step', sent, call, this.#run.lease.until).then((reply) => {
      this.#onTheirWay.delete(late)
      if (reply === null) this.#hasGivenUp = true
      else this.#onReply(reply, call.sentAt, sent.step)
      if (reply?.ok === true && sent.step.state === 'done') this.#run.reportStep('step_done', label)
      this.#look()
    })
    this.#onTheirWay.add(late)
  }

  #onReply(reply: CommandReply, sentAt: number, change: StepChange): void {
    const { lease, isEnding } = this.#run
    if (!reply.ok) {
      if (!isEnding) this.#run.loseLease('taken')
      return
    }
    lease.onRenewed(sentAt)
    if (reply.restored === true) this.resendChanges(change)
  }

  /** The store had lost the record: what this run has recorded is sent again, `but` the change that has restored it. */
  resendChanges(but?: StepChange): void {
    for (const { change } of this.#known.values()) {
      if (change === undefined || change === but || change.state === 'undone') continue
      const sent = toSentStep(this.#run, change, true)
      const call = this.#core.calls.sendInBackground('step', sent)
      const replied = Promise.resolve(call.waitForReply()).then((reply) => {
        this.#onTheirWay.delete(replied)
        if (reply === null) this.#sendAgain(sent, call)
        this.#look()
      })
      this.#onTheirWay.add(replied)
    }
  }

  #onStepSettled(): void {
    this.#running--
    this.#look()
  }

  #look(): void {
    if (!this.areSettled) return
    const then = this.#whenSettled
    this.#whenSettled = undefined
    then?.()
  }
}
