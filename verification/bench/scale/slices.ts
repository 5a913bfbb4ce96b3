import type { Generator } from '../generator.js'
import { ANSWER_BYTES, ORDER_BYTES, orderOf } from '../payout.js'
import type { Phase, Servers } from '../protection.js'
import { CONNECTIONS, inTurn } from '../rounds.js'
import { type Service, startService } from '../service.js'
import { variantOf } from '../variants.js'

/** How much is measured, and by what load. */
export interface Ground {
  readonly generator: Generator
  readonly rounds: number
  /** How long one slice takes. */
  readonly sliceSeconds: number
  /** Of each service, so that the engine has compiled what runs often. */
  readonly warmUpSeconds: number
  tell(progress: string): void
}

/** A service under a load, in slices. */
export interface Sliced {
  readonly name: string
  readonly service: Service
  readonly phase: Phase
  readonly connections?: number
  /** How many responses are replayed in turn. */
  readonly answers?: number
  /** Before each slice. */
  prepare?(): Promise<void>
}

/** A service of its own, with nothing in its store. The caller ends it. */
export async function startEmptyService(
  variant: string,
  servers: Servers,
  answerBytes = ANSWER_BYTES,
  program?: string,
): Promise<Service> {
  const service = await startService(variantOf(variant), servers, process.execPath, program)
  await service.call('reset', { phase: 'first', answerBytes })
  return service
}

/**
 * The CPU time of the service's process, in microseconds a request, for each round. In each round all have one slice in turn, so that
 * what slows the machine for a while slows all of them.
 */
export async function measureSlices(all: readonly Sliced[], ground: Ground): Promise<(name: string) => number[]> {
  const { rounds, sliceSeconds, warmUpSeconds, tell } = ground
  const micros = new Map(all.map(({ name }) => [name, [] as number[]]))
  for (const sliced of all) {
    tell(`warming up: ${sliced.name}`)
    if (sliced.phase === 'replay') await prime(sliced, ground)
    await fire(sliced, ground, warmUpSeconds)
  }
  for (let round = 0; round < rounds; round++) {
    for (const sliced of inTurn(all, round)) {
      tell(`round ${round + 1} of ${rounds}: ${sliced.name}`)
      await sliced.prepare?.()
      micros.get(sliced.name)?.push(await fire(sliced, ground, sliceSeconds))
    }
  }
  return (name) => micros.get(name) ?? []
}

const BODY = orderOf(ORDER_BYTES)

/** Stores the responses that are replayed. */
async function prime({ service: { port }, answers }: Sliced, { generator }: Ground): Promise<void> {
  await generator.call('prime', { port, body: BODY, ...(answers && { answers }) })
}

async function fire(sliced: Sliced, ground: Ground, seconds: number): Promise<number> {
  const { name, service, phase, connections = CONNECTIONS } = sliced
  await service.call('begin')
  const { failed } = await ground.generator.call('fire', {
    port: service.port,
    body: BODY,
    phase,
    connections,
    seconds,
  })
  const { cpuMicros, requests } = await service.call('end')
  if (failed > 0) throw new Error(`${name}: ${failed} of ${requests} requests failed.`)
  // A machine can be so busy that the time is over before the first request.
  return requests === 0 ? fire(sliced, ground, seconds) : cpuMicros / requests
}
