/** What a service of the chaos is started with. */
export interface ServiceSettings {
  /** Its number, and how often it was started before: `2.0`. */
  readonly name: string
  readonly journal: string
  /** One: a single Redis; more: a cluster. */
  readonly redisPorts: readonly number[]
  readonly leaseMs: number
  readonly unknownOutcome: 'rerun' | 'refuse'
  /** The merchants whose books do not remove duplicates. */
  readonly forgetful: readonly string[]
}

/** As the example derives it. */
export function storeTimeoutOf(leaseMs: number): number {
  return Math.floor(leaseMs / 4)
}
