import { AsyncLocalStorage } from 'node:async_hooks'
import { type IdempotencyContext, runner } from 'once-per-key/run'
import { expect, test } from 'vitest'
import { gate } from '../../support/gate.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'

const WAYS = ['transaction', 'step'] as const

test.each(DRIVER_NAMES.flatMap((driver) => WAYS.map((way) => [way, driver] as const)))(
  'the work of each %s that waits in one line runs in its own request’s context, on %s',
  async (way, driver) => {
    const { database, store, connect } = openStore(driver)
    database.exec('CREATE TABLE effects (id TEXT PRIMARY KEY)')
    const tenant = new AsyncLocalStorage<string>()
    const once = runner({ store, name: 'payouts', onEvent: () => {} })
    const claimed = new Map(['acme', 'globex', 'initech'].map((name) => [name, gate()]))
    const begin = gate()
    const seen: Record<string, string | undefined> = {}

    const pay = async (name: string, context: IdempotencyContext): Promise<null> => {
      claimed.get(name)?.open()
      await begin.opened
      const work = (): null => {
        database.exec(`INSERT INTO effects VALUES ('${name}')`)
        seen[name] = tenant.getStore()
        return null
      }
      return way === 'step' ? store.step(context, 'pay', work) : store.transaction(context, work)
    }
    const paying = [...claimed.keys()].map((name) =>
      tenant.run(name, () => once({ scope: name, key: 'k', input: null }, (context) => pay(name, context))),
    )
    await Promise.all([...claimed.values()].map(({ opened }) => opened))
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    begin.open()
    await new Promise((resolve) => setImmediate(resolve)) // Each has met the other connection's transaction.
    expect(seen).toEqual({})
    other.exec('COMMIT')
    await Promise.all(paying)
    expect(seen).toEqual({ acme: 'acme', globex: 'globex', initech: 'initech' })
  },
)
