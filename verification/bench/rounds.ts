import type { Redis } from 'ioredis'
import type { Generator, Seen } from './generator.js'
import { ANSWER_BYTES, ORDER_BYTES, orderOf } from './payout.js'
import type { Phase, Servers } from './protection.js'
import type { Service, Window } from './service.js'
import type { DatabaseName } from './variants.js'

/** What surrounds the services: their load, and their Redis. */
export interface Ground {
  readonly generator: Generator
  readonly redis: Redis
  readonly servers: Servers
  /** The CPU time of each process of a database, in microseconds since it started. */
  databaseCpu?(of: DatabaseName): ReadonlyMap<number, number>
  /** At most. */
  readonly rounds: number
  /** On the monotonic clock: no round begins that would probably end after it, but the first. */
  readonly until?: number
  readonly warmUpRequests: number
  tell(progress: string): void
}

/** One thing to measure, in each round once. */
export interface Candidate {
  readonly name: string
  readonly service: Service
  readonly phase: Phase
  readonly seconds: number
  readonly connections?: number
}

/** A value for each round. */
export interface Figures {
  readonly cpuMicros: number[]
  readonly perSecond: number[]
  readonly p50Ms: number[]
  readonly p99Ms: number[]
  /** CPU time of the database by request. */
  readonly databaseMicros: number[]
  /** Answers other than a success, and work done too often or too seldom, over all rounds. */
  mistakes: number
}

export const CONNECTIONS = 32

/**
 * Measures all candidates in each round, so that what disturbs the machine disturbs them alike. Each is sent as many
 * requests as it answered lately in the time that it is given: none is cut off, so the cost of each is counted. `all`: the
 * figures of rounds before these, which are added to.
 */
export async function measureInRounds(
  what: string,
  candidates: readonly Candidate[],
  ground: Ground,
  all = new Map<string, Figures>(),
): Promise<ReadonlyMap<string, Figures>> {
  const pace = new Map<string, number>()
  for (const candidate of candidates) {
    const { name, service } = candidate
    if (!all.has(name))
      all.set(name, { cpuMicros: [], perSecond: [], p50Ms: [], p99Ms: [], databaseMicros: [], mistakes: 0 })
    ground.tell(`${what}: warming up ${name}`)
    await prepare(candidate, ground)
    const load = { ...loadOf(candidate), port: service.port, amount: ground.warmUpRequests }
    pace.set(name, paceOf(await ground.generator.call('fire', load)))
  }
  for (let round = 0; round < ground.rounds; round++) {
    for (const candidate of inTurn(candidates, round)) {
      const { name } = candidate
      ground.tell(`${what}: round ${round + 1} of ${ground.rounds}, ${name}`)
      const amount = Math.max(2 * CONNECTIONS, 2 * (candidate.connections ?? 0), pace.get(name) ?? 0)
      pace.set(name, await measure(candidate, ground, Math.ceil(amount * candidate.seconds), all.get(name) as Figures))
    }
  }
  return all
}

/** Each begins once in a while: what comes first finds the machine in another state. */
export function inTurn<Each>(all: readonly Each[], round: number): readonly Each[] {
  const from = round % all.length
  return [...all.slice(from), ...all.slice(0, from)]
}

/** Fills in the figures of one round, and answers how many requests a second it took. */
async function measure(candidate: Candidate, ground: Ground, amount: number, figures: Figures): Promise<number> {
  const { service, phase } = candidate
  await prepare(candidate, ground)
  const load = { ...loadOf(candidate), port: service.port }
  // A request for each connection at least.
  const fire = (most: number) => ground.generator.call('fire', { ...load, amount: Math.max(most, load.connections) })
  // The collection between two rounds has shrunk the young generation, and what runs for long has a grown one.
  await fire(Math.ceil(amount / 2))
  const database = service.variant.store as DatabaseName
  const before = ground.databaseCpu?.(database)
  const seen = await counted(service, () => fire(amount))
  const databaseMicros = before && ground.databaseCpu ? growthOf(before, ground.databaseCpu(database)) : 0
  const { cpuMicros, requests, runs, succeeded, failed } = seen
  if (succeeded === 0) throw new Error(`${candidate.name} answered none of ${amount} requests.`)
  figures.cpuMicros.push(cpuMicros / requests)
  figures.perSecond.push(paceOf(seen))
  figures.p50Ms.push(seen.p50Ms)
  figures.p99Ms.push(seen.p99Ms)
  figures.databaseMicros.push(databaseMicros / requests)
  const expected = phase === 'first' || service.variant.kind === 'bare' ? requests : 0
  figures.mistakes += failed + Math.abs(runs - expected)
  return paceOf(seen)
}

async function counted(service: Service, fire: () => Promise<Seen>): Promise<Seen & Window> {
  await service.call('begin')
  const seen = await fire()
  return { ...seen, ...(await service.call('end')) }
}

/** Without the processes that have ended meanwhile. */
function growthOf(before: ReadonlyMap<number, number>, after: ReadonlyMap<number, number>): number {
  return [...after].reduce((sum, [pid, micros]) => sum + micros - (before.get(pid) ?? 0), 0)
}

async function prepare(candidate: Candidate, { generator, redis }: Ground): Promise<void> {
  const { service, phase } = candidate
  if (service.variant.store === 'redis') await redis.flushall()
  await service.call('reset', { phase, answerBytes: ANSWER_BYTES })
  if (phase === 'replay') await generator.call('prime', { port: service.port, body: loadOf(candidate).body })
}

function loadOf({ phase, connections = CONNECTIONS }: Candidate) {
  return { body: orderOf(ORDER_BYTES), connections, phase }
}

function paceOf({ succeeded, seconds }: Seen): number {
  return succeeded === 0 ? 0 : succeeded / seconds
}
