import type { Store } from 'once-per-key/core'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'
import { afterAll, describe, test, vi } from 'vitest'
import { HISTORY_KEYS, tryHistories, tryOperatedHistories } from '../../support/history-trials.js'
import { newDatabase } from '../../support/postgres-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { age } from './ageing.js'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 })

const AT_ONCE = 16
/** ONCE_PER_KEY_HISTORIES=25 tries so many times as many: 60,000 commands. */
const TIMES = Number(process.env.ONCE_PER_KEY_HISTORIES ?? thoroughly('1', '5'))
const COMMANDS = { number: 20 * TIMES, fewestCommands: 500 * TIMES, fewestVisits: 2 } as const
const OPERATED = { number: 20 * TIMES, fewestCommands: 500 * TIMES, fewestVisits: 1 } as const

const { server } = await newDatabase()

describe.each(['read committed', 'repeatable read', 'serializable'])('random histories at %s', async (isolation) => {
  const name = isolation.replace(' ', '_')
  const url = await server.createDatabase(name, { default_transaction_isolation: isolation })
  const pool = new Pool({ connectionString: url, max: AT_ONCE })
  // What makes records older is no command, and is not to be undone for another's sake.
  const clock = new Pool({ connectionString: url, options: '-c default_transaction_isolation=read\\ committed' })
  afterAll(() => Promise.all([pool.end(), clock.end()]))
  const store = new PostgresStore({ pool, sweeps: false })
  await store.migrate()

  test.each([
    ['of commands', tryHistories, COMMANDS],
    ['with operators in between', tryOperatedHistories, OPERATED],
  ] as const)('%s get the replies of the machine', async (kind, tried, trial) => {
    await tried(trial, AT_ONCE, (number) => {
      const prefix = `${kind} ${number} `
      const keys = HISTORY_KEYS.map((key) => prefix + key)
      return { store: prefixed(store, prefix), advance: (ms) => age(clock, keys, ms) }
    })
  })
})

/** The same store, with keys of its own. */
function prefixed(store: PostgresStore, prefix: string): Store {
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
