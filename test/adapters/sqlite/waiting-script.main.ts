// A script without a server, whose caller waits for the store. A wait is over when the store has tried some times.
import { runner } from 'once-per-key/run'
import { SqliteStore } from 'once-per-key/sqlite'
import { type DriverName, openDatabase } from './drivers.js'

const [, , driver, file, scenario] = process.argv as [string, string, DriverName, string, string]

/** After so many tries that were in vain, what the store waits for is over. */
const TRIES = 4

const database = openDatabase(driver, file)
const exec = database.exec.bind(database)
let triesLeft = Number.POSITIVE_INFINITY
let whenTried = (): void => {}
// Not every driver lets its methods be assigned.
Object.defineProperty(database, 'exec', {
  value(sql: string) {
    if (sql === 'BEGIN IMMEDIATE' && --triesLeft === 0) whenTried()
    return exec(sql)
  },
})

/** Another connection to the file, which writes until the store has tried to. */
function locks(): void {
  const other = openDatabase(driver, file)
  other.exec('BEGIN IMMEDIATE')
  triesLeft = TRIES
  whenTried = () => void other.exec('ROLLBACK')
}

const store = new SqliteStore({ database })
const once = runner({ store, name: 'payouts', inFlightWaitMs: 20_000, onEvent: () => {} })
const operation = { scope: 'acme', key: 'order-1', input: { amount: 7 } }

const SCENARIOS: Readonly<Record<string, () => Promise<unknown>>> = {
  'the tables are made': async () => {
    exec('PRAGMA journal_mode = WAL')
    locks()
    return store.migrate()
  },
  'expired rows are swept': async () => {
    await store.migrate()
    locks()
    return store.sweep()
  },
  'the key is claimed': async () => {
    await store.migrate()
    locks()
    return once(operation, () => 'paid')
  },
  'the run is completed': async () => {
    await store.migrate()
    return once(operation, () => {
      locks()
      return 'paid'
    })
  },
  'a transaction begins': async () => {
    await store.migrate()
    return once(operation, (context) => {
      locks()
      return store.transaction(context, () => 'paid', { allowEmpty: true })
    })
  },
  'another owner runs': async () => {
    await store.migrate()
    // It runs in this process, which changes nothing: the other runner knows it by its record alone.
    const owner = runner({ store, name: 'payouts', onEvent: () => {} })
    const first = owner(operation, () => {
      triesLeft = TRIES
      return new Promise<string>((resolve) => {
        whenTried = () => resolve('paid')
      })
    })
    await new Promise(setImmediate)
    const [mine, other] = await Promise.all([once(operation, () => 'twice'), first])
    return mine === other ? mine : [mine, other]
  },
  'an outcome is settled': async () => {
    await once(operation, () => Promise.reject(new Error('down'))).catch(() => {})
    locks()
    const { ok } = await once.resolve({ ...operation, attempt: 1 }, 'failed')
    return ok
  },
  'a step is recorded': async () => {
    await store.migrate()
    return once(operation, async ({ step }) => {
      locks()
      return step('charge', () => {
        locks() // Its result waits, too.
        return 'paid'
      })
    })
  },
  'an earlier step is confirmed, in vain': async () => {
    await store.migrate()
    const brief = runner({ store, name: 'payouts', storeTimeoutMs: 100, onEvent: () => {} })
    const refused = brief(operation, async ({ step }) => {
      await step('charge', () => {
        locks()
        triesLeft = Number.POSITIVE_INFINITY // For good.
        return 'paid'
      })
      await step('ship', () => 'shipped')
    })
    return refused.catch(({ code }: { code: string }) => code)
  },
  'a step commits with its writes': async () => {
    await store.migrate()
    return once(operation, (context) => {
      locks()
      return store.step(context, 'charge', () => 'paid')
    })
  },
  'its one transaction begins': async () => {
    await store.migrate()
    const inside = runner({ store, name: 'payouts', effects: 'in-transaction', onEvent: () => {} })
    return inside(operation, (context) => {
      locks()
      return store.transaction(context, () => 'paid', { allowEmpty: true })
    })
  },
  'a failure is looked after': async () => {
    await store.migrate()
    const inside = runner({ store, name: 'payouts', effects: 'in-transaction', onEvent: () => {} })
    const failing = inside(operation, () => {
      locks()
      throw new Error('declined')
    })
    return failing.catch((error: Error) => error.message)
  },
  'its record is looked up': async () => {
    await once(operation, () => 'paid')
    locks()
    return once({ ...operation, firstSent: new Date(0) }, () => 'twice')
  },
  'unknown outcomes are listed': async () => {
    await once(operation, () => Promise.reject(new Error('down'))).catch(() => {})
    locks()
    const keys: string[] = []
    for await (const { key } of once.unknown()) keys.push(key)
    return keys
  },
  'nothing runs any more': async () => {
    await store.migrate()
    void once(operation, () => {
      locks()
      return 'paid'
    })
    await once.idle()
    const record = await once.inspect(operation)
    return record?.state
  },
}

console.log(`${await SCENARIOS[scenario]?.()}`)
