import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { ratioOf, type Spread } from '../bench/statistics.js'
import type { Phase, Servers } from './measured.js'

const WARM_UP = 8_000
const SLICE = 1_000
const ROUNDS = 12

/** A service in a process of its own, which serves so many requests when it is asked to. */
class SlicedService {
  readonly #child: ChildProcess

  constructor(program: string, servers: Servers, service: string, phase: Phase) {
    const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...inherited } = process.env
    const env = { ...inherited, ...servers, NODE_ENV: 'production' }
    this.#child = fork(program, [service, phase, 'slices'], { env, execArgv: ['--expose-gc'] })
  }

  /** Its CPU time, in microseconds a request. */
  async cpuOf(requests: number): Promise<number> {
    this.#child.send(requests)
    const [reply] = await Promise.race([once(this.#child, 'message'), once(this.#child, 'exit')])
    if (typeof reply !== 'object' || reply === null)
      throw new Error(`The service ended (${reply}) while it was measured.`)
    return (reply as { readonly cpu: number }).cpu
  }

  close(): void {
    this.#child.kill()
  }
}

/**
 * The CPU time of a service's request, as a ratio to that of `floor`: of pairs of short slices that alternate within one run, so that
 * what slows the machine for a while slows both.
 */
export async function measureCpuRatio(
  program: string,
  servers: Servers,
  [service, phase, floor]: readonly [service: string, phase: Phase, floor: string],
): Promise<Spread> {
  const pair = [
    new SlicedService(program, servers, service, phase),
    new SlicedService(program, servers, floor, phase === 'replay' && !floor.includes(',') ? 'first' : phase),
  ] as const
  try {
    for (const each of pair) await each.cpuOf(WARM_UP)
    const own: number[] = []
    const least: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      own.push(await pair[0].cpuOf(SLICE))
      least.push(await pair[1].cpuOf(SLICE))
    }
    return ratioOf(own, least)
  } finally {
    for (const each of pair) each.close()
  }
}
