import type { PostgresStore } from 'once-per-key/postgres'
import type { PoolClient } from 'pg'
import { afterEach, beforeEach, onTestFinished } from 'vitest'
import { startFaultProxy } from '../../../support/fault-proxy.js'
import { payoutServers } from '../../../support/payout-servers.js'
import { openPool, openStore, storeOn } from '../open-store.js'

/** An application on a database of its own, whose default is this isolation level; its effects are rows. */
export async function onDatabase(isolation = 'read committed') {
  const opened = await openStore()
  const { query, server: database, pool: plain } = opened
  const name = new URL(opened.url).pathname.slice(1)
  await query(`ALTER DATABASE ${name} SET default_transaction_isolation = '${isolation}'`)
  await query('CREATE TABLE effects (id text)')
  const url = opened.url
  const [pool, application] = [openPool(url), openPool(url)]
  const store = storeOn({ pool, transactions: application })
  const { forget, close, ...served } = payoutServers({ store, effects: 'in-transaction' })

  /** Called inside the block whose tests use it. */
  function clears(): void {
    beforeEach(async () => {
      await query('TRUNCATE once_per_key.records, effects')
      forget()
    })
    afterEach(close)
  }

  /** The application's connections, by way of a proxy that loses what it is told to lose. */
  async function throughProxy(max = 10) {
    const proxy = await startFaultProxy(database.port)
    const behind = openPool(url.replace(`:${database.port}`, `:${proxy.port}`), { max })
    onTestFinished(async () => {
      await behind.end()
      await proxy.close()
    })
    return { proxy, behind, inProxy: storeOn({ pool, transactions: behind }) }
  }

  return {
    ...{ url, pool, application, store, plain, database, query, throughProxy, clears, ...served },
    insert: (tx: Pick<PoolClient, 'query'>, id = 'e1') => tx.query('INSERT INTO effects VALUES ($1)', [id]),
    effects: async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id),
    record: () => store.inspect('single-tenant:k'),
  }
}

export type OnDatabase = Awaited<ReturnType<typeof onDatabase>>
export type Store = PostgresStore<OnDatabase['application']>
