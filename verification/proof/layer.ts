import type { Check } from './checks.js'

/** One way of looking for a violation, over the real code. */
export type Layer = (budget: Budget) => Promise<Report>

export interface Budget {
  /** How much is done: 1 is the share of `npm run prove`, 0.05 that of the tests. */
  readonly scale: number
  /** The same seed takes the same choices. */
  readonly seed: number
  /** Nothing more is looked for once this check has failed. Absent: the layer goes on, so that each check that fails is named. */
  readonly until?: Check | undefined
  /** Of the databases that a layer goes over, the only one. */
  readonly on?: string | undefined
  /** How much is done, from 0 to 1. */
  progress(share: number): void
}

/** What a layer has seen. It goes on after a violation, so that each check that fails is named. */
export interface Report {
  /** What was done, in the order in which it is printed: `{ states: 81_204 }`. */
  readonly figures: Readonly<Record<string, number>>
  /** How often each check was applied to something that could have failed it. */
  readonly checked: Readonly<Partial<Record<Check, number>>>
  /** What must have happened for the run to show anything; a zero among them fails it. */
  readonly tried: Readonly<Record<string, number>>
  /** The first of each check; how to see it again is part of its story. */
  readonly violations: readonly Violation[]
}

export interface Violation {
  readonly check: Check
  /** What happened, step by step, for somebody who was not there. */
  readonly story: string
}

/** Collects what a layer sees: the first violation of each check is kept, and all are counted. */
export class Findings {
  readonly checked: Partial<Record<Check, number>> = {}
  readonly #violations = new Map<Check, Violation>()

  /** Applies a check; `story` is asked for the first violation only. */
  expect(check: Check, holds: boolean, story: () => string): void {
    this.checked[check] = (this.checked[check] ?? 0) + 1
    if (holds || this.#violations.has(check)) return
    this.#violations.set(check, { check, story: story() })
  }

  hasViolated(check: Check | undefined): boolean {
    return check !== undefined && this.#violations.has(check)
  }

  get violations(): readonly Violation[] {
    return [...this.#violations.values()]
  }
}

/** Why a run does not count as a pass: one line each; none: it passed. */
export function faultsOf({ violations, tried, checked }: Report): string[] {
  return [
    ...violations.map(({ check, story }) => `${check} is violated: ${story}`),
    ...Object.entries(tried)
      .filter(([, times]) => times === 0)
      .map(([what]) => `the run shows nothing: ${what} never happened`),
    ...(Object.values(checked).some((times) => times > 0) ? [] : ['the run shows nothing: no check was applied']),
  ]
}
