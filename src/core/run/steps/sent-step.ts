import type { OwnContext } from '../../calls/awaited.js'
import type { SentStep } from '../../calls/sending-store.js'
import type { Sender } from '../../calls/store-call.js'
import type { Identity } from '../../record/identity.js'
import type { StepChange } from '../../record/record.js'
import type { Lease } from '../lease.js'

/** The parts of a run that its steps use. */
export interface RunOfSteps extends Omit<Sender, 'answer' | 'failure'> {
  readonly identity: Identity
  readonly ownContext: OwnContext | undefined
  readonly isProtected: boolean
  readonly signal: AbortSignal
  /** Its first end was given, or its time has ended. */
  readonly isEnding: boolean
  /** A transaction of the run is open, and was not rolled back. */
  readonly holdsTransaction: boolean
  readonly lease: Lease
  /** @throws IdempotencyError `effects_in_transaction`: nothing was sent. */
  mustBeClaimed(call: string): void
  /** @throws IdempotencyError: no transaction may begin. */
  checkEntry(): void
  tellStep(type: 'step_done' | 'step_resumed' | 'step_pending', label: string): void
  /** Any failure from now on leaves the outcome unknown, or not any more. */
  setStepUncertain(may: boolean): void
}

export function sentStep(run: RunOfSteps, step: StepChange, isUncertain: boolean): SentStep {
  const { identity, ownContext, recordKey, token, scope, fingerprint, attempt, terms } = run
  const uncertain = isUncertain || run.uncertain
  const own = { identity, ownContext, recordKey, token, scope, fingerprint, attempt, uncertain, terms }
  return { ...own, step, answer: null, failure: null }
}
