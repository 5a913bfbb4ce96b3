import type { OwnContext } from '../../calls/awaited.js'
import type { SentStep } from '../../calls/sending-store.js'
import type { Sender } from '../../calls/store-call.js'
import type { Identity } from '../../record/identity.js'
import type { StepChange } from '../../record/record.js'

/** The parts of a run that its steps use. */
export interface RunOfSteps extends Omit<Sender, 'answer' | 'failure'> {
  readonly identity: Identity
  readonly ownContext: OwnContext | undefined
  readonly isProtected: boolean
  readonly signal: AbortSignal
  /** Its first end was given, or its time has ended. */
  readonly isEnding: boolean
  readonly isInTransaction: boolean
  holdsLease(): boolean
  /** How long the run may last, on the monotonic clock. */
  readonly until: number
  /** A command was confirmed that was sent then: it renews the lease. */
  renewedAt(sentAt: number): void
  /** A command has found that another attempt owns the record. */
  taken(): void
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
