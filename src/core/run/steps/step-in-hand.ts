import { Buffer } from 'node:buffer'
import { IdempotencyError, inItsWords, kindOf } from '../../errors.js'
import { looseJson, parsedJson } from '../../json.js'
import { nameFault } from '../../record/identity.js'
import type { StepChange } from '../../record/record.js'

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
  /** The run's signal. */
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
export interface GivenStep {
  readonly work: (step: StepInHand) => unknown
  readonly codec: StepCodec
}

/** A result as it is kept, and as whoever has called gets it. */
export interface ResultOfStep {
  readonly bytes: Uint8Array
  readonly value: unknown
}

const MOST_CHARACTERS = 100

/** @throws IdempotencyError `label_invalid`, `arguments_invalid`: nothing was sent, and the work was not called. */
export function checkStep(label: unknown, work: unknown, options: unknown): GivenStep {
  if (typeof label !== 'string' || nameFault(label, MOST_CHARACTERS) !== null) throw labelInvalid(label)
  if (typeof work !== 'function') {
    throw new IdempotencyError(
      'arguments_invalid',
      `step() needs a function that does the step; seen: ${kindOf(work)}.`,
    )
  }
  const codec = (options as Partial<StepOptions<never>> | undefined)?.result
  if (codec !== undefined && (typeof codec?.encode !== 'function' || typeof codec.decode !== 'function')) {
    throw new IdempotencyError(
      'arguments_invalid',
      'The option `result` of step() needs two functions, `encode` and `decode`.',
    )
  }
  return { work: work as GivenStep['work'], codec: new StepCodec(codec) }
}

function labelInvalid(label: unknown): IdempotencyError {
  const seen = typeof label === 'string' ? `a string of ${label.length} characters` : kindOf(label)
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
  encoded(value: unknown): ResultOfStep {
    try {
      const encoded: unknown = this.#codec === undefined ? looseJson(value) : this.#codec.encode(value as never)
      if (typeof encoded !== 'string' && !(encoded instanceof Uint8Array)) {
        Promise.resolve(encoded).catch(() => {}) // If it is a promise, its rejection must not end the process.
        throw new TypeError(`\`encode\` must return a string or bytes, not ${kindOf(encoded)}`)
      }
      const bytes = Buffer.from(encoded as string)
      return { bytes, value: this.#decoded(bytes) }
    } catch (cause) {
      throw new IdempotencyError(
        'step_result_invalid',
        `The result of a step cannot be kept${inItsWords(cause)}. The step was done, and counts as begun: the next attempt is told ` +
          "`previousOutcome: 'unknown'`. Return JSON, or give `step` the option `result: { encode, decode }`.",
        { cause },
      )
    }
  }

  /** @throws IdempotencyError `decode_failed`: the step stays recorded. */
  decoded(bytes: Uint8Array): unknown {
    try {
      return this.#decoded(bytes)
    } catch (cause) {
      throw new IdempotencyError(
        'decode_failed',
        `The recorded result of a step could not be decoded${inItsWords(cause)}. The step was not called, and its record stands: let ` +
          '`decode` read what each earlier version has encoded, for as long as `retentionMs`.',
        { cause },
      )
    }
  }

  #decoded(bytes: Uint8Array): unknown {
    const own = Buffer.from(bytes)
    if (this.#codec !== undefined) return this.#codec.decode(own)
    const text = own.toString()
    return text === '' ? undefined : parsedJson(text) // JSON text is never empty.
  }
}

/** What a record says of a step: its result, `null` if that was not kept; or `null`: it has none. */
export type RecordedResult = { readonly result: Uint8Array | null } | null

/** How the transaction of a step ended. `'unknown'`: the reply to its COMMIT was lost. */
export type StepEnd = 'committed' | 'unknown' | 'rolled back'

/** One step whose result commits in a transaction with its writes: `transact.ts` calls these in order. */
export interface StepInside {
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
