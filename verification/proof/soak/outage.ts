import { Redis } from 'ioredis'
import {
  createRequestEngine,
  type Decision,
  type IdempotencyEvent,
  type RequestEngine,
  type RequestRun,
} from 'once-per-key/http'
import { RedisStore } from 'once-per-key/redis'
import { type RedisServer, startRedis } from '../../../test/support/redis-server.js'
import type { Findings } from '../layer.js'
import { BEAT_MS, ownPulse } from '../limits/pulse.js'
import { factsOf } from './attempts.js'
import { footprint } from './footprint.js'

export interface Outage {
  readonly refused: number
  readonly paused: number
  /** Commands that were not answered when it ended. */
  readonly unanswered: number
  /** How much of both the second half of it added. */
  readonly grownCommands: number
  readonly grownBytes: number
  readonly completions: number
}

const TIMES = { leaseMs: 3_000, storeTimeoutMs: 200, maxRunMs: 600_000, retentionMs: 1_200_000 } as const
const RUNS = 40
const ANSWER_BYTES = 16 * 1_024
const BATCH = 200
const NOISE_BYTES = 3 * 2 ** 20
/** Each half begins when claims are refused without being sent, and each renewal waits. */
const SETTLE_MS = 2_000
const RECOVERY_BEATS = 600
const MOST_TRIES = 200

/** A real Redis hangs for a while, behind ioredis as its users get it, and requests come as fast as they are refused. */
export async function outage(halfMs: number, findings: Findings): Promise<Outage> {
  const redis = await startRedis()
  const client = new Redis(redis.port)
  try {
    return await during(redis, client, halfMs, findings)
  } finally {
    client.disconnect()
    await redis.close()
  }
}

async function during(redis: RedisServer, client: Redis, halfMs: number, findings: Findings): Promise<Outage> {
  const heard: Partial<Record<IdempotencyEvent['type'], number>> = {}
  const engine = createRequestEngine({
    store: new RedisStore({ client }),
    scope: () => 'merchant_4f9a1c7e2b',
    ...TIMES,
    onEvent: ({ type }) => {
      heard[type] = (heard[type] ?? 0) + 1
    },
  })
  const runs = await Promise.all(Array.from({ length: RUNS }, (_, i) => start(engine, `run-${i}`)))
  let refused = 0

  /** A client that waits for its server keeps each command in one of two queues: on its way, or not sent yet. */
  const unanswered = () => {
    const { commandQueue, offlineQueue } = client as unknown as Record<string, { readonly length: number }>
    return (commandQueue?.length ?? 0) + (offlineQueue?.length ?? 0)
  }
  const requestsFor = async (ms: number) => {
    for (const until = performance.now() + ms; performance.now() < until; ) {
      const decided = await Promise.all(Array.from({ length: BATCH }, (_, i) => decide(engine, `k${refused + i}`)))
      refused += decided.length
      const isRefused = decided.every((one) => one.action === 'reject' && one.problem.code === 'store_unavailable')
      findings.expect('S10', isRefused, () => 'a request that Redis did not answer was not refused')
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  const measured = async () => ({ at: performance.now(), commands: unanswered(), bytes: await footprint() })

  redis.signal('SIGSTOP')
  for (const run of runs.slice(0, RUNS / 2)) void run.settle(ANSWER)
  await requestsFor(SETTLE_MS + halfMs)
  const early = await measured()
  await requestsFor(halfMs)
  const late = await measured()

  const grownCommands = late.commands - early.commands
  const grownBytes = late.bytes - early.bytes
  const probes = Math.ceil((late.at - early.at) / 1_000) + 1
  findings.expect('S12', grownCommands <= probes, () => {
    return `${grownCommands} commands more wait for a Redis that hangs, ${halfMs} ms later: ${late.commands}`
  })
  findings.expect('S12', grownBytes < NOISE_BYTES, () => {
    return `${grownBytes} bytes more are held while a Redis hangs, ${halfMs} ms later`
  })

  redis.signal('SIGCONT')
  await untilStored(RUNS / 2)
  for (const run of runs.slice(RUNS / 2)) await run.settle(ANSWER)
  await untilStored(RUNS)
  await expectKept()
  await expectFree()
  const isIdle = await ownPulse.within(RECOVERY_BEATS, engine.idle()).then(
    () => true,
    () => false,
  )
  findings.expect('L3', isIdle, () => 'idle() does not resolve behind an outage, although every attempt has ended')
  return {
    refused,
    paused: heard.store_paused ?? 0,
    unanswered: late.commands,
    grownCommands,
    grownBytes,
    completions: heard.completed ?? 0,
  }

  async function untilStored(completions: number): Promise<void> {
    for (let beats = 0; beats < RECOVERY_BEATS && (heard.completed ?? 0) < completions; beats++) {
      await new Promise((resolve) => setTimeout(resolve, BEAT_MS))
    }
    const stored = heard.completed ?? 0
    findings.expect('S3', stored === completions, () => {
      return `of ${completions} completions, ${RUNS / 2} of them pending while Redis hung, ${stored} are stored`
    })
  }

  async function expectKept(): Promise<void> {
    for (let i = 0; i < RUNS; i++) {
      const { action } = await decided(engine, `run-${i}`)
      findings.expect(
        'S3',
        action === 'replay',
        () => `a success of an outage is not replayed behind it, but: ${action}`,
      )
    }
  }

  /** Of a claim that was refused nothing is left: the first of them were sent, the last were not. */
  async function expectFree(): Promise<void> {
    for (const key of ['k0', `k${BATCH}`, `k${refused - 1}`]) {
      const decision = await decided(engine, key)
      const isFree = decision.action === 'execute' && decision.run.context.previousOutcome !== 'unknown'
      findings.expect('L1', isFree, () => `a claim that was refused in an outage holds its key behind it: ${key}`)
      if (decision.action === 'execute') await decision.run.fail()
    }
  }
}

const LATE: ReadonlySet<string> = new Set(['store_unavailable', 'in_flight'])
const ANSWER = { status: 201, statusMessage: '', headers: [], body: Buffer.alloc(ANSWER_BYTES, 'a') }

async function decide(engine: RequestEngine<unknown>, key: string): Promise<Decision> {
  return engine.decide(factsOf(key))
}

async function start(engine: RequestEngine<unknown>, key: string): Promise<RequestRun> {
  const decision = await decided(engine, key)
  if (decision.action === 'execute') return decision.run
  throw new Error(`a new key does not run: ${decision.action}`)
}

/** Redis is there; but on a busy machine it may need longer than the time limit, again and again, and be late with a release. */
async function decided(engine: RequestEngine<unknown>, key: string): Promise<Decision> {
  for (let tries = 1; ; tries++) {
    const decision = await decide(engine, key)
    const isLate = decision.action === 'reject' && LATE.has(decision.problem.code)
    if (!isLate || tries === MOST_TRIES) return decision
    await new Promise((resolve) => setTimeout(resolve, TIMES.storeTimeoutMs))
  }
}
