import { SqliteStore } from 'once-per-key/sqlite'
import { describe, test, vi } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { tryHistories, tryOperatedHistories } from '../../support/history-trials.js'
import { thoroughly } from '../../support/thoroughness.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'

vi.setConfig({ testTimeout: 600_000 })

/** ONCE_PER_KEY_HISTORIES=25 tries so many times as many: 100,000 commands on each driver. */
const TIMES = Number(process.env.ONCE_PER_KEY_HISTORIES ?? thoroughly('1', '5'))
const COMMANDS = { number: 100 * TIMES, fewestCommands: 2_400 * TIMES, fewestVisits: 10 }
const OPERATED = { number: 48 * TIMES, fewestCommands: 1_600 * TIMES, fewestVisits: 5 }

describe.each(DRIVER_NAMES)('random histories on %s', (driver) => {
  test.each([
    ['of commands', tryHistories, COMMANDS],
    ['with operators in between', tryOperatedHistories, OPERATED],
  ] as const)('%s get the replies of the machine', async (_kind, tried, trial) => {
    const { database, store } = openStore(driver)
    await store.migrate()
    await tried(trial, 1, () => {
      database.exec('DELETE FROM once_per_key_records')
      const { now, advance } = fakeClock()
      return { store: new SqliteStore({ database, now }), advance: async (ms) => advance(ms) }
    })
  })
})
