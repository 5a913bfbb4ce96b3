/** What a client asks for: the same each time that it sends its key. */
export interface Order {
  /** Whether it commits a reservation first. */
  readonly reserves: boolean
  /** How long the handler takes before its transaction. */
  readonly thinksMs: number
  /** How long the transaction stays open behind its effect. */
  readonly pauseMs: number
  /** Whether the database lets the transaction be inactive for as long as it likes. */
  readonly staysOpen: boolean
  readonly isolation: 'repeatable read' | 'serializable' | null
  /** Whether its answer is sealed. */
  readonly isSealed: boolean
}

export interface ServiceSettings {
  /** Of the database, by a way that may lose what it likes. */
  readonly commandsUrl: string
  readonly applicationUrl: string
  readonly sealingKey: string
}

export const LEASE_MS = 2_000
