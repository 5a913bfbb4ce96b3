import { PostgresStore } from 'once-per-key/postgres'
import { newSealingKey } from 'once-per-key/sealed'
import { Pool } from 'pg'
import { type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.js'
import { startPgBouncer } from '../../../test/support/pgbouncer.js'
import { startPostgres } from '../../../test/support/postgres-server.js'
import { type Choices, choicesOf } from '../chaos/choices.js'
import { inLanes } from '../lanes.js'
import { Findings, type Layer } from '../layer.js'
import { placeOrder, type Told } from './clients.js'
import { COMMITS_WITHOUT_REPLY, count, type Ground, NAMES, STOPPED_BACKENDS, strike } from './faults.js'
import { byKey, type Effect, judgeKeys } from './judging.js'
import { leaveWaiting } from './left-waiting.js'
import { MISTAKES, type Order, type ServiceSettings } from './order.js'
import { startServices } from './services.js'
import { letStaleOwnerComplete } from './stale-owner.js'
import { playUnclaimedScenes } from './unclaimed-scenes.js'

const KEYS = 10_000
const FEWEST_KEYS = 100
const MOST_ROUNDS = 50
const SERVICES = 3
const KEYS_AT_A_TIME = 24
const SEALED_EVERY = 3
const STALE_KEY = 'stale'
const STEPS = ['keys that were reserved', 'keys that called', 'keys that called again', 'steps in a transaction']
const UNCLAIMED = 'requests that claim nothing'
const POOLED = 'of them through PgBouncer'
/** Of the transactions that take their keys. */
const ISOLATION = {
  none: 'orders at the isolation level of the database',
  'repeatable read': 'orders at repeatable read',
  serializable: 'orders at serializable',
} as const
const STALE_OWNERS = 'completions of a stale owner in its transaction'

/**
 * Handlers whose effects commit with their records, in real processes over a real Postgres: processes are killed and stopped,
 * the database is crashed, connections are cut, COMMITs and their replies are lost, while clients abort, repeat and race.
 * The database itself says how many effects each key had.
 */
export const commit: Layer = async ({ scale, seed, until, progress }) => {
  const findings = new Findings()
  const choices = choicesOf(seed, 'commit')
  const database = await startPostgres({ synchronous_commit: 'off' })
  const operator = new Pool({ connectionString: database.url(), max: 2 }).on('error', () => {})
  await new PostgresStore({ pool: operator, sweeps: false }).migrate()
  await operator.query(
    `CREATE TABLE effects (key text, id uuid, attempt bigint, call uuid); CREATE TABLE reservations (key text);
     CREATE TABLE calls (key text, id uuid, attempt bigint, told text); CREATE TABLE inside (key text, code text)`,
  )
  const commands = await startFaultProxy(database.port)
  const application = await startFaultProxy(database.port)
  const pooler = await startPgBouncer(application.port)
  const tried: Record<string, number> = Object.fromEntries(
    [
      ...NAMES,
      COMMITS_WITHOUT_REPLY,
      STOPPED_BACKENDS,
      'takeovers',
      'sealed answers',
      STALE_OWNERS,
      UNCLAIMED,
      POOLED,
      ...Object.values(ISOLATION),
      ...STEPS,
    ].map((name) => [name, 0]),
  )
  const url = (proxy: FaultProxy) => database.url().replace(`:${database.port}`, `:${proxy.port}`)
  const settings: ServiceSettings = {
    commandsUrl: url(commands),
    applicationUrl: url(application),
    pooledUrl: pooler.url('postgres'),
    journalUrl: database.url(),
    sealingKey: newSealingKey(),
  }
  const services = await startServices(SERVICES, 'commit-service.js', settings)

  const stale = await letStaleOwnerComplete(STALE_KEY, services, application, operator)
  const told = new Map<string, Told>([[STALE_KEY, stale]])
  count(tried, STALE_OWNERS)
  for (const [key, each] of await leaveWaiting(services, { commands, application }, findings, seed)) told.set(key, each)
  const stage = { services, commands, application, operator, findings, seed }
  for (const [key, each] of await playUnclaimedScenes(stage)) told.set(key, each)

  const judge = () => judged({ told, operator, findings, tried, seed })
  let effects = await judge()
  if (!findings.hasViolated(until)) {
    const ground: Ground = { services, database, commands, application, operator, tried }
    await placeOrders(ground, told, choices, Math.max(FEWEST_KEYS, Math.round(KEYS * scale)), progress)
    effects = await judge()
  }
  const crashes = services.end()
  await operator.end()
  await pooler.close()
  await Promise.all([commands.close(), application.close()])
  await database.close()
  if (crashes > 0) throw new Error(`${crashes} services crashed by themselves.`)
  const requests = [...told.values()].reduce((sum, { aborted }) => sum + aborted, 0)
  tried[UNCLAIMED] = [...told.values()].reduce((sum, { unclaimed }) => sum + unclaimed, 0)
  tried[POOLED] = [...told.values()].reduce((sum, { pooled }) => sum + pooled, 0)
  const figures = { keys: told.size, effects, 'requests aborted': requests }
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
  const { services, tried } = ground
  const faults = strike(ground, choices.of('faults'))
  let areOver = false
  // A fast machine has gone through all keys before each fault was tried, and a slow one before a COMMIT met its own.
  const haveAllHit = () => faults.haveAllStruck() && tried[COMMITS_WITHOUT_REPLY] !== 0
  const goesOn = () => told.size < keys - KEYS_AT_A_TIME || !haveAllHit()
  const jobs = Array.from({ length: MOST_ROUNDS * keys }, (_, number) => async () => {
    if (number >= keys && !goesOn()) return
    const key = `key-${number}`
    const own = choices.of(key)
    const clients = own.between(1, 4)
    const order = orderOf(own, number)
    const each = await placeOrder(key, order, clients, services, SERVICES, own, () => areOver)
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

interface Judging {
  readonly told: ReadonlyMap<string, Told>
  readonly operator: Pool
  readonly findings: Findings
  readonly tried: Record<string, number>
  readonly seed: number
}

/** What the clients were told, against what the database has. Returns how many keys have an effect. */
async function judged({ told, operator, findings, tried, seed }: Judging): Promise<number> {
  const effects = await effectsIn(operator)
  await checkSealed(operator, findings, tried, seed)
  const attempts = await attemptsIn(operator)
  const steps = await stepsIn(operator)
  for (const { key, code } of steps.inside) {
    const isRefused = code === 'step_in_transaction'
    findings.expect('S14', isRefused, () => `seed ${seed}, ${key}: a step in a transaction got '${code}'`)
  }
  const repeated = [...steps.calls.values()].filter((calls) => calls.length > 1).length
  for (const [i, times] of [steps.reservations.size, steps.calls.size, repeated, steps.inside.length].entries()) {
    tried[STEPS[i] as string] = times
  }
  judgeKeys({ told, effects, attempts, reservations: steps.reservations, findings, seed })
  for (const key of told.keys()) {
    const found = effects.get(key) ?? []
    if (key !== STALE_KEY && found.some(({ attempt }) => attempt > 1)) count(tried, 'takeovers')
    const calls = steps.calls.get(key) ?? []
    findings.expect(
      'S14',
      found.every((effect) => isResultOf(effect, calls)) && calls.filter(({ told }) => told === 'none').length <= 1,
      () => `seed ${seed}, ${key}: its effects are ${JSON.stringify(found)}, its calls were ${JSON.stringify(calls)}`,
    )
  }
  return effects.size
}

function orderOf(choices: Choices, number: number): Order {
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

interface CalledEffect extends Effect {
  /** The result of its step. */
  readonly call: string | null
}

async function effectsIn(operator: Pool): Promise<Map<string, CalledEffect[]>> {
  const { rows } = await operator.query('SELECT key, id, attempt::int, call FROM effects')
  return byKey(rows)
}

/** The answers of sealed orders, as the database shows them. */
async function checkSealed(operator: Pool, findings: Findings, tried: Record<string, number>, seed: number) {
  const { rows } = await operator.query(COMPLETED)
  for (const { name, status, shows } of rows) {
    const number = Number(/(\d+)$/.exec(name)?.[1])
    if (number % SEALED_EVERY !== 0) continue
    count(tried, 'sealed answers')
    findings.expect('S13', status === 0 && !shows, () => `seed ${seed}, ${name}: the database shows its answer`)
  }
}

const COMPLETED = `SELECT r.name, r.status, position(convert_to(e.id::text, 'UTF8') in coalesce(r.body, '')) > 0 AS shows
  FROM once_per_key.records r JOIN effects e ON r.name = 'single-tenant:' || e.key WHERE r.state = 'completed'`

interface Call {
  readonly id: string
  readonly attempt: number
  readonly told: string
}

/** What the services wrote down of their steps. */
async function stepsIn(operator: Pool) {
  const reservations = await operator.query('SELECT key, count(*)::int AS times FROM reservations GROUP BY key')
  const called = await operator.query('SELECT key, id, attempt::int, told FROM calls')
  const inside = await operator.query('SELECT key, code FROM inside')
  return {
    reservations: new Map<string, number>(reservations.rows.map(({ key, times }) => [key, times])),
    calls: byKey<Call>(called.rows),
    inside: inside.rows,
  }
}

/** An effect has the result of the last call before it: once that was recorded, nobody has called again. */
function isResultOf({ attempt, call }: CalledEffect, calls: readonly Call[]): boolean {
  if (call === null) return true
  const made = calls.find(({ id }) => id === call)
  return made !== undefined && calls.every((other) => other.attempt <= made.attempt || other.attempt > attempt)
}

/** Which attempt owns the record of each key. */
async function attemptsIn(operator: Pool): Promise<ReadonlyMap<string, number>> {
  const { rows } = await operator.query(
    "SELECT split_part(name, ':', 2) AS key, attempt::int FROM once_per_key.records",
  )
  return new Map(rows.map(({ key, attempt }) => [key, attempt]))
}
