import { relative } from 'node:path'
import type { Reporter, TestCase } from 'vitest/node'

/**
 * Says which tests passed only when they were tried again, and how they had failed: a seed that found something, or a test
 * that a busy machine upsets.
 */
export default class SecondTries implements Reporter {
  readonly #tests: TestCase[] = []

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky === true) this.#tests.push(test)
  }

  onTestRunEnd(): void {
    for (const test of this.#tests) {
      const errors = (test.result().errors ?? []).map(({ stack, message }) => stack ?? message)
      console.error(['', 'Passed at the second try:', whereabouts(test), ...errors].join('\n'))
    }
  }
}

function whereabouts({ module, fullName }: TestCase): string {
  return `${relative(process.cwd(), module.moduleId)} > ${fullName}`
}
