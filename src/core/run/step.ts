import { AsyncLocalStorage } from 'node:async_hooks'
import { Buffer } from 'node:buffer'
import type { CommandSender } from '../calls/store-call.js'
import type { SentStep } from '../calls/store-calls.js'
import { describeCause, describeKind, IdempotencyError } from '../errors.js'
import { warnOnce } from '../events/events.js'
import { encodeLooseJson, parseJson } from '../json.js'
import { findNameFault, type Identity } from '../record/identity.js'
import type { StepChange } from '../record/record.js'
import { anything, resolveOptions } from '../validation.js'
import type { Lease } from './lease.js'

/** What the work of a step receives. */
export interface StepInHand {
  /** `deriveKey(label)`: the same for each attempt, so that the other side removes duplicates. */
  readonly key: string
  readonly label: string
  /**
   * `'unknown'`: an earlier attempt, or an earlier call of this one, began the step, and left no result: check whether it
   * had its effect before repeating it. `'none'`: it never began, or each beginning was taken back. Without a claim
   * (`storeFailure: 'runUnprotected'`) always `'unknown'`.
   */
  readonly previousOutcome: 'none' | 'unknown'
  readonly signal: AbortSignal
}

/** Options for the result of a step that is not JSON. */
export interface StepOptions<Result> {
  /** Converts the result into text or bytes, and back: two synchronous functions. */
  readonly result: {
    readonly encode: (result: Result) => string | Uint8Array
    /** Receives the bytes that `encode` returned, as a Buffer; of text, its UTF-8. */
    readonly decode: (encoded: Buffer) => Result
  }
}

/** The arguments of a step, checked. */
export interface CheckedStepArguments {
  readonly work: (step: StepInHand) => unknown
  readonly codec: StepCodec
}

/** A result as it is kept, and as whoever has called gets it. */
export interface StepResult {
  readonly bytes: Uint8Array
  readonly value: unknown
}

const MOST_CHARACTERS = 100

/** Only its name: what is wrong with it is an argument. */
const OPTIONS = { result: anything }

/** @throws IdempotencyError `label_invalid`, `arguments_invalid`, `options_invalid`: nothing was sent, and the work was not called. */
export function parseStepArguments(label: unknown, work: unknown, options: unknown): CheckedStepArguments {
  if (typeof label !== 'string' || findNameFault(label, MOST_CHARACTERS) !== null) throw labelInvalidError(label)
  if (typeof work !== 'function') {
    throw new IdempotencyError(
      'arguments_invalid',
      `step() needs a function that does the step; seen: ${describeKind(work)}.`,
    )
  }
  if (options !== undefined) resolveOptions('step()', options, OPTIONS)
  const codec = (options as Partial<StepOptions<never>> | undefined)?.result
  if (codec !== undefined && (typeof codec?.encode !== 'function' || typeof codec.decode !== 'function')) {
    throw new IdempotencyError(
      'arguments_invalid',
      'The option `result` of step() needs two functions, `encode` and `decode`.',
    )
  }
  return { work: work as CheckedStepArguments['work'], codec: new StepCodec(codec) }
}

function labelInvalidError(label: unknown): IdempotencyError {
  const seen = typeof label === 'string' ? `a string of ${label.length} characters` : describeKind(label)
  return new IdempotencyError(
    'label_invalid',
    `step needs a label of 1 to ${MOST_CHARACTERS} characters, without control characters, that names it, such as 'charge'; seen: ${seen}.`,
  )
}

/** Converts results of steps; JSON by default. Frozen within a major version: later ones read what earlier ones kept. */
export class StepCodec {
  readonly #codec: StepOptions<never>['result'] | undefined

  constructor(codec: StepOptions<never>['result'] | undefined) {
    this.#codec = codec
  }

  /** @throws IdempotencyError `step_result_invalid`: the step stays begun. */
  encodeResult(value: unknown): StepResult {
    try {
      const encoded: unknown = this.#codec === undefined ? encodeLooseJson(value) : this.#codec.encode(value as never)
      if (typeof encoded !== 'string' && !(encoded instanceof Uint8Array)) {
        Promise.resolve(encoded).catch(() => {}) // If it is a promise, its rejection must not end the process.
        throw new TypeError(`\`encode\` must return a string or bytes, not ${describeKind(encoded)}`)
      }
      const bytes = Buffer.from(encoded as string)
      return { bytes, value: this.#decodeBytes(bytes) }
    } catch (cause) {
      throw new IdempotencyError(
        'step_result_invalid',
        `The result of a step cannot be kept${describeCause(cause)}. The step was done, and counts as begun: the next attempt is told ` +
          "`previousOutcome: 'unknown'`. Return JSON, or give `step` the option `result: { encode, decode }`.",
        { cause },
      )
    }
  }

  /** @throws IdempotencyError `decode_failed`: the step stays recorded. */
  decodeResult(bytes: Uint8Array): unknown {
    try {
      return this.#decodeBytes(bytes)
    } catch (cause) {
      throw new IdempotencyError(
        'decode_failed',
        `The recorded result of a step could not be decoded${describeCause(cause)}. The step was not called, and its record stands: let ` +
          '`decode` read what each earlier version has encoded, for as long as `retentionMs`.',
        { cause },
      )
    }
  }

  #decodeBytes(bytes: Uint8Array): unknown {
    const own = Buffer.from(bytes)
    if (this.#codec !== undefined) return this.#codec.decode(own)
    const text = own.toString()
    return text === '' ? undefined : parseJson(text) // JSON text is never empty.
  }
}

/** What a record says of a step: its result, `null` if that was not kept; or `null`: it has none. */
export type RecordedResult = { readonly result: Uint8Array | null } | null

/** How the transaction of a step ended. `'unknown'`: the reply to its COMMIT was lost. */
export type StepEnd = 'committed' | 'unknown' | 'rolled back'

/** One step whose result commits in a transaction with its writes: `transact.ts` calls these in order. */
export interface TransactionStep {
  /** Resolves when results that are on their way are confirmed; `undefined`: there are none. */
  ready(): Promise<void> | undefined
  /**
   * An earlier call has committed it: the work is not called.
   *
   * @throws IdempotencyError `step_not_kept`.
   */
  found(recorded: NonNullable<RecordedResult>): void
  /** The work returned this. Returns what to record. */
  made(value: unknown): StepChange
  over(end: StepEnd): void
  /** What was found or made, as the caller gets it. */
  result(): unknown
}

/** An earlier attempt has recorded its result: no transaction is needed. */
export interface ResumedStep {
  readonly recorded: unknown
}

/** Steps may run side by side, so nothing else tells which of them begin inside another one. */
const CALLED = new AsyncLocalStorage<StepWork>()

/**
 * The work of a step, while it is called. Whatever it starts runs in its async context, also when it is over: a job that starts the next
 * one in a step would keep every job before it, if those were not skipped.
 */
export class StepWork {
  /** The work inside which it is called. */
  around: StepWork | undefined = StepWork.findCurrent()
  isOver = false
  /** How many steps have begun inside it, or are about to, and were not taken back. */
  begun = 0

  /** The work inside which the caller runs, if it is not over. */
  static findCurrent(): StepWork | undefined {
    const current = StepWork.#findRunning(CALLED.getStore())
    if (current !== undefined) current.around = StepWork.#findRunning(current.around)
    return current
  }

  static #findRunning(work: StepWork | undefined): StepWork | undefined {
    let found = work
    while (found?.isOver === true) found = found.around
    return found
  }

  async call<Result>(work: () => Result): Promise<Awaited<Result>> {
    try {
      return await CALLED.run(this, work)
    } finally {
      this.isOver = true
    }
  }
}

/** `around`: the work inside which a step is about to begin, or did not begin, or was taken back. */
export function countBegunSteps(around: StepWork | undefined, by: 1 | -1): void {
  for (let work = around; work !== undefined; work = work.around) work.begun += by
}

export interface RunOfSteps extends Omit<CommandSender, 'answer' | 'failure'> {
  readonly identity: Identity
  readonly isProtected: boolean
  readonly signal: AbortSignal
  /** Its first end was given. */
  readonly isEnding: boolean
  /** Its end was given, and nothing of it is on its way: its record takes no more, and must not be restored. */
  readonly hasEnded: boolean
  /** A transaction of the run is open, and was not rolled back. */
  readonly holdsTransaction: boolean
  readonly lease: Lease
  /** @throws IdempotencyError `effects_in_transaction`: nothing was sent. */
  assertClaimed(call: string): void
  /** @throws IdempotencyError: no transaction may begin. */
  assertMayTransact(): void
  reportStep(type: 'step_done' | 'step_resumed' | 'step_pending', label: string): void
  loseLease(reason: 'taken'): void
  /** Whether any failure from now on leaves the outcome unknown. */
  mergeFacts(facts: { readonly hasStep: boolean }): void
}

export function toSentStep(run: RunOfSteps, step: StepChange, isUncertain: boolean): SentStep {
  const { identity, recordKey, token, scope, fingerprint, attempt, terms } = run
  const uncertain = isUncertain || run.uncertain
  const own = { identity, recordKey, token, scope, fingerprint, attempt, uncertain, terms }
  return { ...own, step, answer: null, failure: null }
}

/** Nothing else tells of a forgotten `await`. It is no misuse: a time limit of the handler's own may have answered on purpose. */
export function warnUnawaitedStep(label: string): void {
  warnOnce(
    'ONCE_PER_KEY_STEP_NOT_AWAITED',
    `A run has completed before its step ${JSON.stringify(label)}: the work of the step may never be called, its result is not recorded, and ` +
      'if it fails, nothing repeats it. Unless that is meant, await each `context.step` before the answer. This is printed once for each label.',
    label,
  )
}
