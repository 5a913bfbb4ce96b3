import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes longest in one file, the longest first: begun last, it would keep one core busy when all else has ended. */
const LONGEST = [
  'verification/cost/budgets.test.ts',
  'verification/proof/proof.test.ts',
  'verification/proof/mutants/compiler.test.ts',
  'test/adapters/sql/store-laws.test.ts',
  'test/adapters/sealed/store-laws.test.ts',
  'test/command/command.test.ts',
]

/** The order of a fresh machine, which knows nothing of earlier runs. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification) => {
      const found = LONGEST.indexOf(relative(this.ctx.config.root, moduleId))
      return found === -1 ? LONGEST.length : found
    }
    return others.sort((a, b) => rank(a) - rank(b))
  }
}
