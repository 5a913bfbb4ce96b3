/** What a service of the chaos is started with. */
export interface ServiceSettings {
  /** Its number, and how often it was started before: `2.0`. */
  readonly name: string
  readonly journal: string
  /** What listens at the ports. */
  readonly access: Access
  readonly redisPorts: readonly number[]
  /** Without one, answers are not sealed. */
  readonly sealingKey: string | null
  readonly leaseMs: number
  readonly unknownOutcome: 'rerun' | 'refuse'
  /** The merchants whose books do not remove duplicates. */
  readonly forgetful: readonly string[]
}

export type Access = 'a single Redis' | 'a cluster' | 'sentinels'

/** As the example derives it. */
export function storeTimeoutOf(leaseMs: number): number {
  return Math.floor(leaseMs / 4)
}
