import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** Writes which files failed, for `scripts/test.mjs`, unless something failed outside of the tests. */
export default class FailedFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const failed = modules.filter((module) => !module.ok()).map(({ relativeModuleId }) => relativeModuleId)
    const isAll = unhandledErrors.length === 0
    writeFileSync('node_modules/.failed-tests.json', JSON.stringify(isAll ? failed : []))
  }
}
