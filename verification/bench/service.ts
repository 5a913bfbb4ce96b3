import { join } from 'node:path'
import { type Program, programOf } from './calls.js'
import { spawnOnServerCore } from './cores.js'
import type { Phase, Servers } from './protection.js'
import type { Variant } from './variants.js'

export interface Setup {
  readonly phase: Phase
  readonly answerBytes: number
}

/** What a service did, and what it cost, between `begin` and `end`. */
export interface Window {
  /** User and system time of its whole process. */
  readonly cpuMicros: number
  readonly requests: number
  /** How often the work was done. */
  readonly runs: number
}

type ServiceCalls = {
  listen(): number
  reset(setup: Setup): void
  fill(count: number): void
  begin(): void
  end(): Window
  memory(): number
  collections(): readonly number[]
}

export interface Service extends Pick<Program<ServiceCalls>, 'call' | 'end'> {
  readonly variant: Variant
  readonly port: number
  signal(signal: NodeJS.Signals): void
}

/** Starts a variant in a process of its own, on the server's core. `program`: where the service was built. */
export async function startService(
  variant: Variant,
  servers: Servers,
  node: string,
  program = join(process.cwd(), 'build/bench/service.js'),
): Promise<Service> {
  const { BENCH_PROFILES, ...env } = process.env
  const profiling =
    BENCH_PROFILES === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', join(BENCH_PROFILES, variant.name)]
  const args = ['--expose-gc', '--max-old-space-size=8192', ...profiling]
  const child = spawnOnServerCore(node, [...args, program, variant.name, JSON.stringify(servers)], {
    env: { ...env, NODE_ENV: 'production' },
    // Some peers write a line for each failure.
    stdio: ['ignore', 'ignore', process.env.BENCH_DEBUG ? 'inherit' : 'ignore', 'ipc'],
  })
  const { call, end } = programOf<ServiceCalls>(child, variant.label)
  const port = await call('listen')
  return { variant, port, signal: (signal) => void child.kill(signal), call, end }
}
