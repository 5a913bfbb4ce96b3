import { PostgresStore } from 'once-per-key/postgres'
import { storeLaws } from 'once-per-key/testing'
import { Pool } from 'pg'
import { afterAll, describe, test, vi } from 'vitest'
import { startPgBouncer } from '../../support/pgbouncer.js'
import { startPostgres } from '../../support/postgres-server.js'
import { thoroughly } from '../../support/thoroughness.js'

// The laws wait for real leases to lapse, each on keys of its own: together they wait no longer than one. No more at a time than a
// busy machine serves: the store refuses a claim that waits for a connection for long.
vi.setConfig({ maxConcurrency: 10, testTimeout: 60_000 })

const server = await startPostgres()
const bouncer = await startPgBouncer(server.port)
afterAll(async () => {
  await bouncer.close()
  await server.close()
})

const isolation = (level: string) => ({ default_transaction_isolation: level })

const EVERYDAY = [{ name: 'read_committed', settings: isolation('read committed'), bounced: false }]
const OTHERS = [
  { name: 'bounced_serializable', settings: isolation('serializable'), bounced: true },
  { name: 'repeatable_read', settings: isolation('repeatable read'), bounced: false },
  { name: 'serializable', settings: isolation('serializable'), bounced: false },
  { name: 'not_synchronous', settings: { synchronous_commit: 'off' }, bounced: false },
  { name: 'bounced', settings: {}, bounced: true },
]

describe.each(thoroughly(EVERYDAY, [...EVERYDAY, ...OTHERS]))(
  'PostgresStore obeys the store laws: $name',
  async ({ name, settings, bounced }) => {
    const direct = await server.createDatabase(name, settings)
    const pool = new Pool({ connectionString: bounced ? bouncer.url(name) : direct, max: 10 })
    afterAll(() => pool.end())
    await new PostgresStore({ pool }).migrate()
    storeLaws(test.concurrent, async () => ({ store: new PostgresStore({ pool, sweeps: false }) }), {
      operable: true,
      listable: true,
      forgetful: true,
      stepped: true,
    })
  },
)
