import { Pool } from 'pg'
import { startOwnPostgres } from '../servers/postgres.js'
import type { Place } from './place.js'

/** It has written, and has been silent for longer than between two statements. */
const HELD = `
  SELECT count(*)::int AS held FROM pg_stat_activity
  WHERE application_name = $1 AND state = 'idle in transaction' AND backend_xid IS NOT NULL
    AND state_change < clock_timestamp() - interval '100 ms'`

/** On the database of a URL, or on a server that is started for it. */
export async function openPostgresPlace(given: string | undefined): Promise<Place> {
  // It need not outlive a crash of the machine.
  const own = given === undefined ? await startOwnPostgres({ fsync: 'off' }) : undefined
  if (own !== undefined) process.once('exit', own.remove)
  const url = given ?? `${own?.url()}`
  const pool = new Pool({ connectionString: url, max: 1 }).on('error', () => {})
  const nameOf = (process: number) => `simulated-payments-${process}`

  return {
    name: 'Postgres',
    variablesOf(process) {
      const named = new URL(url)
      named.searchParams.set('application_name', nameOf(process))
      return { DATABASE_URL: named.href }
    },
    async heldBy(process) {
      const { rows } = await pool.query<{ held: number }>(HELD, [nameOf(process)])
      return rows[0]?.held ?? 0
    },
    async close() {
      await pool.end()
      await own?.stop()
    },
  }
}
