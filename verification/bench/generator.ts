import { fork } from 'node:child_process'
import { join } from 'node:path'
import { type Program, programOf } from './calls.js'
import type { Phase } from './protection.js'

/** What to send, and for how long. */
export type Load = {
  readonly port: number
  readonly body: string
  readonly connections: number
  readonly phase: Phase
} & ({ readonly seconds: number } | { readonly amount: number })

/** A service whose answers are made, to be replayed. */
export interface Ring extends Pick<Load, 'port' | 'body'> {
  readonly answers?: number
}

/** What came back. */
export interface Seen {
  readonly succeeded: number
  readonly failed: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

type GeneratorCalls = {
  prime(ring: Ring): Seen
  fire(load: Load): Seen
}

export type Generator = Program<GeneratorCalls>

export function startGenerator(program = join(process.cwd(), 'build/bench/generator.js')): Generator {
  const child = fork(program, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  return programOf<GeneratorCalls>(child, 'The load generator')
}
