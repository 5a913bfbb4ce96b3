import type { Check } from '../checks.js'
import type { Findings } from '../layer.js'
import type { KeyHistory } from './history.js'
import { timelineOf } from './timeline.js'

/** What one round is judged with. */
export interface Verdicts {
  /** Applies a check to a key; what is wrong is told with all that happened to the key. */
  expect(check: Check, history: KeyHistory, holds: boolean, wrong: () => string): void
  /** The same for what a store breaks that forgets a record. */
  expectIfKept(check: Check, history: KeyHistory, holds: boolean, wrong: () => string): void
  /** Violations that a record which a failover lost explains. */
  readonly explained: number
}

/** How to see a violation again, and which keys a failover is known to have forgotten. */
export interface Circumstances {
  readonly preamble: string
  readonly startedAt: number
  isLost(history: KeyHistory): boolean
}

export function verdictsFor(findings: Findings, { preamble, startedAt, isLost }: Circumstances): Verdicts {
  let explained = 0

  const expect: Verdicts['expect'] = (check, history, holds, wrong) => {
    findings.expect(check, holds, () => {
      const { scope, key } = history
      return `${wrong()} (${scope} ${key}).\n${preamble}\n${timelineOf(history, startedAt)}`
    })
  }

  return {
    get explained() {
      return explained
    },
    expect,
    expectIfKept(check, history, holds, wrong) {
      const isExplained = !holds && isLost(history)
      if (isExplained) explained++
      expect(check, history, holds || isExplained, wrong)
    },
  }
}
