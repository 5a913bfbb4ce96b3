import { PostgresStore } from 'once-per-key/postgres'
import { Pool, type PoolConfig } from 'pg'
import { type PostgresServer, startPostgres } from '../../../test/support/postgres-server.js'
import { inLanes } from '../lanes.js'
import { Findings, type Layer } from '../layer.js'
import { type Losers, raceFor } from './race.js'

const KEYS = 5_000
const FEWEST_KEYS = 60
const CLIENTS = 32
/** Each with a pool of its own. */
const PROCESSES = 4
const KEYS_AT_A_TIME = 4
const LEVELS = ['read committed', 'serializable'] as const

/** Many clients of one key at once, key after key, on a real Postgres: half of the keys at each isolation level. */
export const races: Layer = async ({ scale, until, progress }) => {
  const findings = new Findings()
  const keys = Math.max(FEWEST_KEYS, Math.round(KEYS * scale))
  // A COMMIT that waits for the disk holds its locks for longer.
  const server = await startPostgres({ fsync: 'on', log_lock_waits: 'on', deadlock_timeout: '1ms' })
  const tried: Record<string, number> = {}
  let raced = 0
  for (const level of LEVELS) {
    const seen = await raceAt(level, server, findings, keys / LEVELS.length, () => {
      progress(++raced / keys)
      return findings.hasViolated(until)
    })
    for (const [what, times] of Object.entries(seen)) tried[`${what}, ${level}`] = times
  }
  tried['commands that waited for a lock'] = Number((await server.run(WAITS))[0]?.waits)
  await server.close()
  const figures = { keys: raced, 'clients of each': CLIENTS }
  return { figures, tried, checked: findings.checked, violations: findings.violations }
}

async function raceAt(
  level: (typeof LEVELS)[number],
  server: PostgresServer,
  findings: Findings,
  keys: number,
  isEnough: () => boolean,
): Promise<Record<string, number>> {
  const database = level.replace(' ', '_')
  const connectionString = await server.createDatabase(database, { default_transaction_isolation: level })
  const open = (config: PoolConfig) => new Pool({ connectionString, ...config }).on('error', () => {})
  const pools = Array.from({ length: PROCESSES }, () => open({ max: CLIENTS / PROCESSES }))
  // What it does is no part of the race, and cannot be in its way.
  const operator = open({ max: 2, options: '-c default_transaction_isolation=read\\ committed' })
  const stores = pools.map((pool) => new PostgresStore({ pool, sweeps: false }))
  await stores[0]?.migrate()
  const losers: Losers = {
    ...{ 'claims that lost': 0, 'take-overs that lost': 0, 'completions that were refused': 0, replays: 0 },
  }
  const race = {
    ...{ findings, losers, lapse: (key: string) => operator.query(LAPSE, [key]) },
    stores: Array.from({ length: CLIENTS }, (_, client) => stores[client % PROCESSES] as PostgresStore),
  }
  let isOver = false
  const jobs = Array.from({ length: keys }, (_, number) => async () => {
    if (isOver) return
    await raceFor(`${level} ${number}`, race)
    if (isEnough()) isOver = true
  })
  await inLanes(KEYS_AT_A_TIME, jobs)
  await Promise.all([...pools, operator].map((pool) => pool.end()))
  return { ...losers }
}

const LAPSE = `UPDATE once_per_key.records SET lease_until = 1
  WHERE id = sha256(convert_to($1, 'UTF8'))`

/** Of the server's log: a line for each wait of a millisecond or more. */
const WAITS = `SELECT count(*) AS waits FROM regexp_matches(
  pg_read_file(current_setting('data_directory') || '/../log'), 'still waiting for', 'g')`
