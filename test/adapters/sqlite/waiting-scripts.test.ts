import { afterAll, describe, expect, test, vi } from 'vitest'
import { runNodeWith } from '../../support/run-node.js'
import { buildProgram } from './built-program.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const program = await buildProgram('waiting-script.main.ts')
afterAll(() => program.remove())

describe.each(DRIVER_NAMES)('on %s, a script whose caller waits', (driver) => {
  test.each([
    ['the tables are made', 'undefined'],
    ['expired rows are swept', '0'],
    ['the key is claimed', 'paid'],
    ['the run is completed', 'paid'],
    ['a transaction begins', 'paid'],
    ['another owner runs', 'paid'],
    ['an outcome is settled', 'true'],
    ['a step is recorded', 'paid'],
    ['an earlier step is confirmed, in vain', 'store_failed'],
    ['a step commits with its writes', 'paid'],
    ['its one transaction begins', 'paid'],
    ['a failure is looked after', 'declined'],
    ['its record is looked up', 'paid'],
    ['unknown outcomes are listed', 'order-1'],
    ['nothing runs any more', 'completed'],
  ])('until %s gets its result', async (scenario, result) => {
    const { file } = openStore(driver)
    const { exitCode, stdout } = await runNodeWith({}, '--no-warnings', program.path, driver, file, scenario)
    expect([exitCode, stdout]).toEqual([0, `${result}\n`])
  })
})
