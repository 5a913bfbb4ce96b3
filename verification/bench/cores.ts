import { execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { cpus } from 'node:os'

/** Servers run on one core; this process, the load generator and Redis, on another. */
const SERVER_CORE = 0
const OTHER_CORE = 1

const pins = cpus().length > 1 && hasTaskset()

/** What the report says of it. */
export const PINNING = pins
  ? 'server on one core; load generator and Redis on another'
  : 'no cores of their own (no taskset, or a single core)'

/** From here on, all that this process starts is beside it, unless it is started on the server's core. */
export function leaveServerCore(): void {
  if (pins) execFileSync('taskset', ['-a', '-c', '-p', `${OTHER_CORE}`, `${process.pid}`], { stdio: 'ignore' })
}

/** Starts a program on the server's core, by the Node at that path. */
export function spawnOnServerCore(node: string, args: readonly string[], options: SpawnOptions) {
  return pins ? spawn('taskset', ['-c', `${SERVER_CORE}`, node, ...args], options) : spawn(node, args, options)
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['-p', `${process.pid}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
