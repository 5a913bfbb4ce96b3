/** The steps of a record, as the machine keeps them: pure, like the machine. */
import type { ShownStep, Step, StepChange } from './record.js'

export interface StoredStep {
  readonly label: string
  readonly state: StepChange['state']
  /** Of the record's owner; 0: an earlier owner recorded it, so each change of the owner's follows it. */
  readonly order: number
  readonly result: Uint8Array | null
}

/** Most records have none. */
export type StoredSteps = readonly StoredStep[] | undefined

/** A record, or a reply, with its steps; itself if there are none, so that nothing is allocated for them. */
export function having<Each extends object, OfStep>(
  each: Each,
  steps: readonly OfStep[] | undefined,
): Each & { readonly steps?: readonly OfStep[] } {
  return steps === undefined || steps.length === 0 ? each : { ...each, steps }
}

/**
 * The same steps with this change in them; `null`: a later one of the same owner has arrived before it, or the result is
 * recorded. A result is final: nobody who was told of it begins its step again, and what comes is late.
 */
export function changed(steps: StoredSteps, { label, order, state, result }: StepChange): readonly StoredStep[] | null {
  const before = steps?.find((step) => step.label === label)
  if (before !== undefined && before.order > order) return null
  if (before?.state === 'done') return null
  const step: StoredStep = { label, state, order, result: state === 'done' ? result : null }
  return before === undefined ? [...(steps ?? []), step] : (steps ?? []).map((each) => (each === before ? step : each))
}

/** What a next owner finds: what was taken back has never begun. */
export function handedOver(steps: StoredSteps): StoredSteps {
  return steps?.filter(({ state }) => state !== 'undone').map((step) => ({ ...step, order: 0 }))
}

/** As an owner is told them. */
export function told(steps: StoredSteps): readonly Step[] | undefined {
  return steps?.flatMap(({ label, state, result }) => (state === 'undone' ? [] : [{ label, state, result }]))
}

/** As an operator is shown them. */
export function seenOf(steps: StoredSteps): readonly ShownStep[] | undefined {
  return told(steps)?.map(({ label, state }) => ({ label, state }))
}
