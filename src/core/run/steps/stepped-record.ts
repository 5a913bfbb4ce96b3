import type { Step } from '../../record/record.js'
import { OwnedRecord } from '../owned-record.js'
import type { RunOfSteps } from './sent-step.js'
import type { ResumedStep, StepInHand, StepInside } from './step-in-hand.js'
import { Steps } from './steps.js'

/** The record of an attempt whose steps are recorded in it. An attempt without steps pays nothing for them. */
export abstract class SteppedRecord extends OwnedRecord implements RunOfSteps {
  /** The outcome of an earlier attempt is unknown: `uncertain` also says that a step of this one began. */
  protected isEarlierUnknown = false
  #steps: Steps | undefined = undefined

  abstract readonly signal: AbortSignal
  abstract readonly isEnding: boolean
  abstract readonly isInTransaction: boolean

  /** Earlier attempts have recorded these. */
  protected recordedSteps(steps: readonly Step[]): void {
    this.#steps = new Steps(this, this.core, steps)
  }

  /** A step of the operation: see `IdempotencyContext`. */
  step(label: string, work: (step: StepInHand) => unknown, options: unknown): Promise<unknown> {
    this.#steps ??= new Steps(this, this.core)
    return this.#steps.step(label, work, options)
  }

  stepInside(label: string, work: unknown, options: unknown): StepInside | ResumedStep {
    this.#steps ??= new Steps(this, this.core)
    return this.#steps.inside(label, work, options)
  }

  abstract mustBeClaimed(call: string): void
  abstract checkEntry(): void

  restored(): void {
    this.#steps?.restored()
  }

  protected get areStepsSettled(): boolean {
    return this.#steps === undefined || this.#steps.areSettled
  }

  protected whenStepsSettled(then: () => void): void {
    this.#steps?.whenSettled(then)
  }

  tellStep(type: 'step_done' | 'step_resumed' | 'step_pending', label: string): void {
    const { scope, key } = this.identity
    this.emit({ type, scope, key, attempt: this.attempt, label })
  }

  setStepUncertain(may: boolean): void {
    this.uncertain = this.isEarlierUnknown || may
  }
}
