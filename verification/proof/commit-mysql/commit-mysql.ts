import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { startFaultProxy } from '../../../test/support/fault-proxy.js'
import { startMariaDb } from '../../../test/support/mariadb-server.js'
import { type Choices, choicesOf } from '../chaos/choices.js'
import { placeOrder, type Told } from '../commit/clients.js'
import { count } from '../commit/faults.js'
import { byKey, type Effect, judgeKeys } from '../commit/judging.js'
import type { Order } from '../commit/order.js'
import { startServices } from '../commit/services.js'
import { inLanes } from '../lanes.js'
import { Findings, type Layer } from '../layer.js'
import { type Ground, NAMES, strike } from './faults.js'
import { playMySqlScenes } from './scenes.js'
import type { ServiceSettings } from './service-settings.js'

const KEYS = 5_000
const FEWEST_KEYS = 100
const MOST_ROUNDS = 50
const SERVICES = 3
const KEYS_AT_A_TIME = 16
const DATABASE = 'orders'
const UNCLAIMED = 'requests that claim nothing'
const RESERVED = 'keys that were reserved'
const TAKEN_OVER = 'takeovers'
/** It takes its key away for a day. */
const LEFT_OPEN = /^(ends-its-transaction-itself|writes-nothing|commits-no-command)-/

/**
 * Handlers whose effects commit with their records, in real processes over a real MariaDB. First scenes, in each of which two requests
 * meet where this database differs from others; then processes are killed and stopped, the database is crashed, connections are killed
 * and cut, COMMITs and their replies are lost, while clients abort, repeat and race. The database itself says how many effects each key
 * had.
 */
export const commitMySql: Layer = async ({ scale, seed, until, progress }) => {
  const findings = new Findings()
  const choices = choicesOf(seed, 'commit-mysql')
  // So that a time-out of a lock does the most that it can.
  const database = await startMariaDb({ innodb_rollback_on_timeout: 'ON' })
  const uri = await database.createDatabase(DATABASE)
  const operator = createPool({ uri, connectionLimit: 2 })
  await new MySqlStore({ pool: operator, sweeps: false }).migrate()
  await operator.query(
    'CREATE TABLE effects (n BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(64), id VARCHAR(64), attempt INT, KEY (name))',
  )
  await operator.query('CREATE TABLE reservations (n BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(64))')
  const commands = await startFaultProxy(database.port)
  const application = await startFaultProxy(database.port)
  const through = (port: number) => uri.replace(`:${database.port}`, `:${port}`)
  const settings: ServiceSettings = {
    commandsUrl: through(commands.port),
    applicationUrl: through(application.port),
  }
  const services = await startServices(SERVICES, 'commit-mysql-service.js', settings)
  const tried: Record<string, number> = Object.fromEntries(
    [...NAMES, UNCLAIMED, RESERVED, TAKEN_OVER].map((name) => [name, 0]),
  )

  const told = await playMySqlScenes({ services, commands, application, findings, seed, database, name: DATABASE })
  await judge(told, operator, findings, tried, seed)
  if (!findings.hasViolated(until)) {
    const ground: Ground = { services, database, commands, application, tried }
    await placeOrders(ground, told, choices, Math.max(FEWEST_KEYS, Math.round(KEYS * scale)), progress)
    await judge(told, operator, findings, tried, seed)
  }
  const crashes = services.end()
  await operator.end()
  await Promise.all([commands.close(), application.close()])
  await database.close()
  if (crashes > 0) throw new Error(`${crashes} services crashed by themselves.`)
  const sum = (of: (each: Told) => number) => [...told.values()].reduce((sum, each) => sum + of(each), 0)
  tried[UNCLAIMED] = sum(({ unclaimed }) => unclaimed)
  const figures = { keys: told.size, 'requests aborted': sum(({ aborted }) => aborted) }
  return { figures, tried, checked: findings.checked, violations: findings.violations }
}

/** Clients of many keys, while faults strike. */
async function placeOrders(
  ground: Ground,
  told: Map<string, Told>,
  choices: Choices,
  keys: number,
  progress: (share: number) => void,
): Promise<void> {
  const faults = strike(ground, choices.of('faults'))
  let areOver = false
  // A fast machine has gone through all keys before each fault was tried.
  const goesOn = () => told.size < keys - KEYS_AT_A_TIME || !faults.haveAllStruck()
  const jobs = Array.from({ length: MOST_ROUNDS * keys }, (_, number) => async () => {
    if (number >= keys && !goesOn()) return
    const key = `key-${number}`
    const own = choices.of(key)
    const clients = own.between(1, 4)
    told.set(key, await placeOrder(key, orderOf(own), clients, ground.services, SERVICES, own, () => areOver))
    progress(Math.min(1, told.size / keys))
    // The last keys are left in peace, so that they can end.
    if (goesOn()) return
    void faults.stop().then(() => {
      areOver = true
    })
  })
  await inLanes(KEYS_AT_A_TIME, jobs)
  await faults.stop()
}

function orderOf(choices: Choices): Order {
  return {
    isSealed: false,
    isPatient: false,
    way: 'plain',
    reserves: choices.chance(0.3),
    calls: false,
    thinksMs: choices.chance(0.3) ? choices.between(1, 300) : 0,
    pauseMs: choices.chance(0.3) ? choices.between(1, 200) : 0,
    staysOpen: false,
    isolation: choices.one([null, null, 'repeatable read', 'serializable'] as const),
  }
}

async function judge(
  told: ReadonlyMap<string, Told>,
  operator: Pool,
  findings: Findings,
  tried: Record<string, number>,
  seed: number,
): Promise<void> {
  const rows = async <Row>(sql: string) =>
    (await operator.query<RowDataPacket[]>(sql))[0] as readonly unknown[] as readonly Row[]
  const effects = byKey<Effect>(await rows('SELECT name AS `key`, id, attempt FROM effects'))
  const records = await rows<{ key: string; attempt: number }>(
    "SELECT SUBSTRING_INDEX(CONVERT(name USING utf8mb4), ':', -1) AS `key`, attempt FROM once_per_key_records",
  )
  const reserved = await rows<{ key: string; times: number }>(
    'SELECT name AS `key`, COUNT(*) AS times FROM reservations GROUP BY name',
  )
  const reservations = new Map(reserved.map(({ key, times }) => [key, times]))
  const attempts = new Map(records.map(({ key, attempt }) => [key, attempt]))
  const judged = new Map([...told].filter(([key]) => !LEFT_OPEN.test(key)))
  judgeKeys({ told: judged, effects, attempts, reservations, findings, seed })
  tried[RESERVED] = reservations.size
  for (const found of effects.values()) if (found.some(({ attempt }) => attempt > 1)) count(tried, TAKEN_OVER)
}
