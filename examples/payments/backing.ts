import type { Store } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import type { Logger } from 'pino'
import type { Availability } from './availability.js'
import { type Ledger, memoryLedger } from './ledger.js'
import type { Settings } from './settings.js'

/** What the service stands on. */
export interface Backing {
  /** Of records. */
  readonly store: Store
  /** The books. */
  readonly ledger: Ledger
  /** Absent: nothing that could go away. */
  readonly availability?: Availability
  /** Takes a second at most, whatever is away. */
  close(): Promise<void>
}

/** A place that cannot be used. Its message is one line. */
export class BackingUnfit extends Error {}

/**
 * Where the settings say; without a word in this process, for as long as that lives. What is not used is not loaded.
 *
 * @throws BackingUnfit
 */
export async function openBacking({ redis, databaseUrl, sqliteFile }: Settings, logger: Logger): Promise<Backing> {
  if (redis !== undefined) return (await import('./redis.js')).openRedis(redis, logger)
  if (databaseUrl !== undefined) {
    const { openPostgres } = await import('./postgres.js')
    return openPostgres(databaseUrl, logger).catch(unfit('Postgres'))
  }
  if (sqliteFile !== undefined) {
    const { openSqlite } = await import('./sqlite.js')
    return openSqlite(sqliteFile, logger).catch(unfit('SQLITE_FILE'))
  }
  return { store: new MemoryStore(), ledger: memoryLedger(), async close() {} }
}

function unfit(name: string): (error: Error) => never {
  return ({ message }) => {
    throw new BackingUnfit(`${name} cannot be used: ${message}`)
  }
}
