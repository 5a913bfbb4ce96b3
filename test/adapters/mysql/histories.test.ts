import type { Store } from 'once-per-key/core'
import type { MySqlStore } from 'once-per-key/mysql'
import { describe, test, vi } from 'vitest'
import { HISTORY_KEYS, tryHistories, tryOperatedHistories } from '../../support/history-trials.js'
import { thoroughly } from '../../support/thoroughness.js'
import { age } from './ageing.js'
import { openStore } from './open-store.js'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 })

const AT_ONCE = 8
/** ONCE_PER_KEY_HISTORIES=25 tries so many times as many: 60,000 commands. */
const TIMES = Number(process.env.ONCE_PER_KEY_HISTORIES ?? thoroughly('1', '5'))
const COMMANDS = { number: 40 * TIMES, fewestCommands: 1_000 * TIMES, fewestVisits: 2 } as const
const OPERATED = { number: 40 * TIMES, fewestCommands: 1_000 * TIMES, fewestVisits: 1 } as const

const { store, pool } = await openStore()

describe('random histories', () => {
  test.each([
    ['of commands', tryHistories, COMMANDS],
    ['with operators in between', tryOperatedHistories, OPERATED],
  ] as const)('%s get the replies of the machine', async (kind, tried, trial) => {
    await tried(trial, AT_ONCE, (number) => {
      const prefix = `${kind} ${number} `
      const keys = HISTORY_KEYS.map((key) => prefix + key)
      return { store: prefixed(store, prefix), advance: (ms) => age(pool, keys, ms) }
    })
  })
})

/** The same store, with keys of its own. */
function prefixed(store: MySqlStore, prefix: string): Store {
  return {
    begin: (key, claim) => store.begin(prefix + key, claim),
    renew: (key, own) => store.renew(prefix + key, own),
    complete: (key, own) => store.complete(prefix + key, own),
    release: (key, own) => store.release(prefix + key, own),
    step: (key, own) => store.step(prefix + key, own),
    inspect: (key) => store.inspect(prefix + key),
    resolve: (key, resolution) => store.resolve(prefix + key, resolution),
    forget: (key, forgetting) => store.forget(prefix + key, forgetting),
  }
}
