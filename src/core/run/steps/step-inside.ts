import type { StepChange } from '../../record/record.js'
import type { StepCodec } from './step-in-hand.js'

/** What a record says of a step: its result, `null` if that was not kept; or `null`: it has none. */
export type RecordedResult = { readonly result: Uint8Array | null } | null

/** How the transaction of a step ended. `'unknown'`: the reply to its COMMIT was lost. */
export type StepEnd = 'committed' | 'unknown' | 'rolled back'

/** The parts of a run's steps that a step inside a transaction uses. */
export interface StepsAround {
  /** Resolves when results that are on their way are confirmed; `undefined`: there are none. */
  ready(): Promise<void> | undefined
  /** @throws IdempotencyError `step_not_kept`. */
  read(result: Uint8Array | null): unknown
  /** The change that records the result. */
  change(result: Uint8Array): StepChange
  over(end: StepEnd, wasFound: boolean): void
}

/** One step whose result commits in a transaction with its writes: `transact.ts` calls these in order. */
export class StepInside {
  readonly #steps: StepsAround
  readonly #codec: StepCodec
  #value: unknown
  #wasFound = false

  constructor(steps: StepsAround, codec: StepCodec) {
    this.#steps = steps
    this.#codec = codec
  }

  ready(): Promise<void> | undefined {
    return this.#steps.ready()
  }

  /** An earlier call has committed it: the work is not called. */
  found({ result }: NonNullable<RecordedResult>): void {
    this.#wasFound = true
    this.#value = this.#steps.read(result)
  }

  /** The work returned this. Returns what to record. */
  made(value: unknown): StepChange {
    this.#wasFound = false
    const { bytes, value: decoded } = this.#codec.encoded(value)
    this.#value = decoded
    return this.#steps.change(bytes)
  }

  over(end: StepEnd): void {
    this.#steps.over(end, this.#wasFound)
  }

  result(): unknown {
    return this.#value
  }
}

/** An earlier attempt has recorded its result: no transaction is needed. */
export interface ResumedStep {
  readonly recorded: unknown
}
