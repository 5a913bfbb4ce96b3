import type { FaultLane } from './faults.js'
import type { Access } from './service-settings.js'

/** The Redis side of a round: what the services stand on, and what can happen to it. */
export interface Ground {
  readonly access: Access
  /** For each service, where it finds Redis. */
  readonly portsOf: readonly (readonly number[])[]
  readonly lanes: readonly FaultLane[]
  /** Ends whatever is still wrong. */
  heal(): Promise<void>
  /** All keys with their bytes, as a client of Redis sees them. */
  contents(prefix: string): Promise<ReadonlyMap<string, Buffer>>
  /** What a failover was seen to lose. */
  readonly failovers: readonly Failover[]
  close(): Promise<void>
}

/** A master died, and its replica took over with what it had by then. */
export interface Failover {
  readonly diedAt: number
  /** Until then no replica had taken its place. */
  readonly replicaUntil: number
  /** Before this, whatever it had confirmed had reached its replica. */
  readonly lagsFrom: number
  /** Whether a key was the dead master's. */
  had(key: string): boolean
  /** What the replica knew of the records. */
  readonly kept: ReadonlyMap<string, Buffer>
}

/** The library's own default. */
export const RECORDS = 'once-per-key:'
