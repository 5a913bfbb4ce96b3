import type { Observation, Request } from './history.js'
import type { Instance } from './instance.js'
import type { Random } from './random.js'
import type { Setting } from './setting.js'
import type { Tally } from './tally.js'
import type { VirtualClock } from './virtual-clock.js'
import type { WorkInHand } from './work-in-hand.js'

/** What all that lives in one world shares. */
export interface World {
  readonly setting: Setting
  readonly random: Random
  readonly clock: VirtualClock<Instance>
  readonly tally: Tally
  /** Those that run at the moment, and those that have crashed. */
  readonly instances: Instance[]
  /** Whose claim a token is. */
  readonly claimants: Map<string, Request>
  /** Every key that anybody has asked for. */
  readonly keys: Map<string, { readonly scope: string; readonly key: string }>
  readonly inHand: WorkInHand
  requests: number
  commands: number
  runs: number
  /** Timers that would keep the process alive. */
  references: number
  observe(observation: Observation): void
}

/** Whether things still fail. */
export function isTroubled({ clock, setting }: World): boolean {
  return clock.now < setting.faultsEndAt
}

/** About as long as a command may take, or as a lease: where it matters which of two things is the first. */
export function criticalMs({ random, setting }: World): number {
  const { leaseMs, storeTimeoutMs } = setting.options
  const ms = random.pick([storeTimeoutMs / 2, storeTimeoutMs, leaseMs / 2, leaseMs, leaseMs])
  return Math.ceil(ms * random.pick([0.9, 1, 1, 1.1, 1.5])) + random.between(-1, 1)
}

/** The latest time for what a fault delays: soon after the last of them. */
export function delayed({ clock, random, setting }: World, ms: number): number {
  return Math.min(clock.now + ms, Math.max(clock.now, setting.faultsEndAt + random.between(0, 1_000)))
}
