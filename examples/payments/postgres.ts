import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Availability } from './availability.js'
import type { Backing } from './backing.js'
import { postgresLedger } from './postgres-ledger.js'

const CONTACT_MS = 1_000
const FAREWELL_MS = 1_000

/** Records and books in Postgres: all processes on it are one service, and what an operation writes commits with its record. */
export async function openPostgres(connectionString: string, logger: Logger): Promise<Required<Backing>> {
  const open = (max: number) =>
    new Pool({ connectionString, max, connectionTimeoutMillis: CONTACT_MS }).on('error', ({ message }) =>
      logger.warn({ reason: message }, 'an idle connection to postgres broke'),
    )
  // Handlers that hold every connection of theirs must not starve the commands that end them.
  const application = open(10)
  const commands = open(4)
  const store = new PostgresStore({ pool: commands, transactions: application })
  await store.migrate()
  const ledger = await postgresLedger(application, store)
  logger.info('records and books are in postgres')
  let isAway = false

  const availability: Availability = {
    name: 'postgres',
    async check() {
      isAway = await commands.query('SELECT 1').then(
        () => false,
        () => true,
      )
      return !isAway
    },
    isAway: () => isAway,
  }
  return {
    store,
    ledger,
    availability,
    async close() {
      const ended = Promise.all([application.end(), commands.end()])
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, FAREWELL_MS).unref())])
    },
  }
}
