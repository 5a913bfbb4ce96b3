import type { Pool, PoolConnection, PoolOptions } from 'mysql2/promise'
import { afterAll, afterEach, beforeEach, onTestFinished } from 'vitest'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { payoutServers } from '../../support/payout-servers.js'
import { openPool, openStore, storeOn } from './open-store.js'

/** An application on a database of its own, whose sessions begin with a statement; its effects are rows. */
export async function onDatabase(session = 'DO 0', settings?: Readonly<Record<string, string>>) {
  const opened = await openStore(settings)
  const { query, server: database, url, pool } = opened
  await query('CREATE TABLE effects (id VARCHAR(64) PRIMARY KEY) ENGINE = InnoDB')
  const application = applicationPool(url)
  afterAll(() => application.end().catch(() => {}))
  const store = storeOn({ pool, transactions: application })
  const { forget, close, ...served } = payoutServers({ store })

  function applicationPool(uri: string, options: PoolOptions = {}): Pool {
    const made = openPool(uri, options)
    made.on('connection', (connection) => void connection.query(session))
    return made
  }

  /** Called inside the block whose tests use it. */
  function clears(): void {
    beforeEach(async () => {
      await query('DELETE FROM once_per_key_records')
      await query('DELETE FROM effects')
      forget()
    })
    afterEach(close)
  }

  /** The application's connections, by way of a proxy that loses what it is told to lose. */
  async function throughProxy() {
    const proxy = await startFaultProxy(database.port)
    const behind = applicationPool(url.replace(`:${database.port}`, `:${proxy.port}`))
    onTestFinished(async () => {
      await behind.end().catch(() => {})
      await proxy.close()
    })
    return { proxy, behind, inProxy: storeOn({ pool, transactions: behind }) }
  }

  return {
    ...{ url, pool, application, store, database, query, throughProxy, clears, ...served },
    insert: (tx: Pick<PoolConnection, 'query'>, id = 'e1') => tx.query('INSERT INTO effects VALUES (?)', [id]),
    effects: async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id),
    record: () => store.inspect('single-tenant:k'),
    /** Ends the record's lease, as if time had passed. */
    lapse: () => query('UPDATE once_per_key_records SET lease_until = 1'),
  }
}
