import { newSealingKey } from 'once-per-key/sealed'
import { type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.js'
import { type Choices, choicesOf } from '../chaos/choices.js'
import { inLanes } from '../lanes.js'
import { type Budget, Findings, type Layer } from '../layer.js'
import { CLAIMED_SCENES, STALE_OWNERS } from './claimed-scenes.js'
import { placeOrder, type Told } from './clients.js'
import { DIALECTS, type DialectName, type Query } from './dialect.js'
import { COMMITS_WITHOUT_REPLY, count, NAMES, STOPPED_BACKENDS, strike } from './faults.js'
import { judgeKeys, SEALED, SEALED_EVERY, STEPS, TAKEN_OVER } from './judging.js'
import { MISTAKES, type Order, type ServiceSettings } from './order.js'
import { playScenes, type Stage } from './scenery.js'
import { startServices } from './services.js'
import { UNCLAIMED_SCENES } from './unclaimed-scenes.js'

/** Of each database. */
const KEYS = 10_000
const FEWEST_KEYS = 100
const MOST_ROUNDS = 50
const SERVICES = 3
/** On a busy machine. */
const OPERATOR_CONNECT_MS = 60_000
const KEYS_AT_A_TIME = 24
const UNCLAIMED = 'requests that claim nothing'
const POOLED = 'of them through PgBouncer'
/** Of the transactions that take their keys. */
const ISOLATION = {
  none: 'orders at the isolation level of the database',
  'repeatable read': 'orders at repeatable read',
  serializable: 'orders at serializable',
} as const
const TRIED = [
  ...[...NAMES, COMMITS_WITHOUT_REPLY, STOPPED_BACKENDS, STALE_OWNERS, TAKEN_OVER, SEALED, UNCLAIMED],
  ...[...Object.values(ISOLATION), ...STEPS],
]

const TABLES = [
  'CREATE TABLE effects (n SERIAL PRIMARY KEY, name VARCHAR(64), id VARCHAR(64), attempt INT, called VARCHAR(64))',
  'CREATE INDEX effects_by_name ON effects (name)',
  'CREATE TABLE reservations (n SERIAL PRIMARY KEY, name VARCHAR(64))',
  'CREATE TABLE calls (n SERIAL PRIMARY KEY, name VARCHAR(64), id VARCHAR(64), attempt INT, told VARCHAR(64))',
  'CREATE TABLE inside (n SERIAL PRIMARY KEY, name VARCHAR(64), code VARCHAR(64))',
]

/**
 * Handlers whose effects commit with their records, in real processes over a real database, one database after the other. First scenes,
 * in each of which requests meet where the key must not be taken twice. Then processes are killed and stopped, the database is crashed,
 * connections are cut, COMMITs and their replies are lost, while clients abort, repeat and race. The database itself says how many effects
 * each key had.
 */
export const commit: Layer = async ({ on, ...budget }) => {
  const findings = new Findings()
  const figures: Record<string, number> = {}
  const tried: Record<string, number> = {}
  const names = Object.keys(DIALECTS).filter((name) => on === undefined || name === on) as DialectName[]
  for (const [i, name] of names.entries()) {
    if (findings.hasViolated(budget.until)) break
    const progress = (share: number) => budget.progress((i + share) / names.length)
    const done = await commitOn(name, { ...budget, progress }, findings)
    for (const [what, number] of Object.entries(done.figures)) figures[`${what} on ${name}`] = number
    for (const [what, number] of Object.entries(done.tried)) tried[`on ${name}, ${what}`] = number
  }
  return { figures, tried, checked: findings.checked, violations: findings.violations }
}

async function commitOn(name: DialectName, { scale, seed, until, progress }: Budget, findings: Findings) {
  const dialect = await DIALECTS[name]()
  const choices = choicesOf(seed, `commit ${name}`)
  const database = await dialect.startServer()
  const operator = dialect.open(database.uri, 2, OPERATOR_CONNECT_MS)
  const query: Query = (sql, values) => dialect.query(operator, sql, values)
  await dialect.createStore(operator).migrate()
  for (const table of TABLES) await query(table)
  const commands = await startFaultProxy(database.port)
  const application = await startFaultProxy(database.port)
  const pooler = await dialect.startPooler?.(application.port)
  const tried = Object.fromEntries([...TRIED, ...(pooler === undefined ? [] : [POOLED])].map((what) => [what, 0]))
  const through = (proxy: FaultProxy) => database.uri.replace(`:${database.port}`, `:${proxy.port}`)
  const settings: ServiceSettings = {
    dialect: name,
    commandsUri: through(commands),
    applicationUri: through(application),
    pooledUri: pooler?.uri,
    journalUri: database.uri,
    sealingKey: newSealingKey(),
  }
  const services = await startServices(SERVICES, 'commit-service.js', settings)
  const run = `${name}, seed ${seed}`
  const stage: Stage = { dialect, database, services, commands, application, operator, query, findings, run, tried }

  const told = await playScenes(stage, { ...CLAIMED_SCENES, ...UNCLAIMED_SCENES, ...dialect.scenes })
  let effects = await judgeKeys(stage, told)
  if (!findings.hasViolated(until)) {
    const keys = Math.max(FEWEST_KEYS, Math.round(KEYS * scale))
    await placeOrders(stage, told, choices, keys, pooler !== undefined, progress)
    effects = await judgeKeys(stage, told)
  }
  const crashes = services.end()
  await dialect.close(operator)
  await pooler?.close()
  await Promise.all([commands.close(), application.close()])
  await database.close()
  if (crashes > 0) throw new Error(`${crashes} services crashed by themselves.`)
  const sum = (of: (each: Told) => number) => [...told.values()].reduce((sum, each) => sum + of(each), 0)
  tried[UNCLAIMED] = sum(({ unclaimed }) => unclaimed)
  if (pooler !== undefined) tried[POOLED] = sum(({ pooled }) => pooled)
  return { figures: { keys: told.size, effects, 'requests aborted': sum(({ aborted }) => aborted) }, tried }
}

/** Clients of many keys, while faults strike. */
async function placeOrders(
  stage: Stage,
  told: Map<string, Told>,
  choices: Choices,
  keys: number,
  hasPooler: boolean,
  progress: (share: number) => void,
): Promise<void> {
  const { services, tried } = stage
  const faults = strike(stage, choices.of('faults'))
  let areOver = false
  // A fast machine has gone through all keys before each fault was tried, and a slow one before a COMMIT met its own.
  const haveAllHit = () => faults.haveAllStruck() && tried[COMMITS_WITHOUT_REPLY] !== 0
  const goesOn = () => told.size < keys - KEYS_AT_A_TIME || !haveAllHit()
  const jobs = Array.from({ length: MOST_ROUNDS * keys }, (_, number) => async () => {
    if (number >= keys && !goesOn()) return
    const key = `key-${number}`
    const own = choices.of(key)
    const order = createOrder(own, number)
    const each = await placeOrder(key, order, services, own, hasPooler, () => areOver)
    told.set(key, each)
    if (each.unclaimed > 0) count(tried, ISOLATION[order.isolation ?? 'none'])
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

function createOrder(choices: Choices, number: number): Order {
  const isSealed = number % SEALED_EVERY === 0
  return {
    isSealed,
    isPatient: false,
    way: isSealed || choices.chance(0.6) ? 'plain' : choices.one(MISTAKES),
    reserves: choices.chance(0.3),
    calls: choices.chance(0.4),
    thinksMs: choices.chance(0.3) ? choices.between(1, 300) : 0,
    pauseMs: choices.chance(0.3) ? choices.between(1, 200) : 0,
    staysOpen: false,
    isolation: choices.one([null, null, null, 'repeatable read', 'serializable'] as const),
  }
}
