import { type Fault, faultsOf } from './faults.js'
import type { Results } from './simulation.js'

/** What a run shows. */
export interface Verdict {
  readonly wanted: number
  /** How many effects there were, by the service's books. */
  readonly run: number
  /** Payments that were made twice or more. */
  readonly duplicates: number
  /** The first of them, for somebody who looks into it. */
  readonly examples: readonly string[]
  /** What was paid too much, in cents. */
  readonly tooMuch: number
  readonly differing: number
  readonly leaks: number
  /** Other amounts under a used key that were carried out, or not refused as mismatched. */
  readonly changesAccepted: number
  /** Payments that were not made, or of which a client was not told a success in the end. */
  readonly unfinished: number
  readonly faults: readonly { readonly fault: Fault; readonly times: number }[]
  /** Faults that did not happen, though the run was long enough for each. */
  readonly untried: readonly Fault[]
}

/** A shorter run need not meet every fault. */
const ENOUGH_OPERATIONS = 100
const EXAMPLES = 3

export function verdictOf({ seen, made, changesMade }: Results, { withKill }: { readonly withKill: boolean }): Verdict {
  const faults = faultsOf({ withKill }).map((fault) => ({ fault, times: seen.faults.get(fault) ?? 0 }))
  const extra = made.filter(({ times }) => times > 1)
  return {
    wanted: made.length,
    run: made.reduce((sum, { times }) => sum + times, 0),
    duplicates: extra.length,
    examples: extra
      .slice(0, EXAMPLES)
      .map(({ payment, times }) => `${payment.key} of ${payment.merchant.name}: ${times}`),
    tooMuch: extra.reduce((sum, { payment, times }) => sum + payment.amount * (times - 1), 0),
    differing: seen.differing,
    leaks: seen.leaks,
    changesAccepted: Math.max(seen.acceptedChanges, changesMade),
    unfinished: made.filter(({ payment, times }) => times === 0 || seen.unfinished.has(payment)).length,
    faults,
    untried: made.length < ENOUGH_OPERATIONS ? [] : faults.flatMap(({ fault, times }) => (times === 0 ? [fault] : [])),
  }
}

export function isAsPromised({ duplicates, differing, leaks, changesAccepted, unfinished, untried }: Verdict): boolean {
  return duplicates + differing + leaks + changesAccepted + unfinished + untried.length === 0
}
