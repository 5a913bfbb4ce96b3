import type { DialectName } from './dialect.js'

/** What a client asks for: the same each time that it sends its key. */
export interface Order {
  /** Whether it commits a reservation first. */
  readonly reserves: boolean
  /** Whether it calls somebody else before, in a step. */
  readonly calls: boolean
  /** How long the handler takes before its transaction. */
  readonly thinksMs: number
  /** How long the transaction stays open behind its effect. */
  readonly pauseMs: number
  /** Whether the database lets the transaction be inactive for as long as it likes. */
  readonly staysOpen: boolean
  readonly isolation: 'repeatable read' | 'serializable' | null
  /** Whether its answer is sealed. */
  readonly isSealed: boolean
  readonly way: Way
  /** Whether its run may take longer than any client waits. */
  readonly isPatient: boolean
}

/**
 * How the handler comes to its effect:
 *
 * - `plain`: in one transaction.
 * - `tries again`: the client rejects the first transaction while its work still runs; the handler opens another one at once.
 * - `lets go`: the same in the first attempt, but the handler waits for nothing more; that work answers.
 * - `writes nothing`: nothing is written in the first transaction, which answers; the handler tries again at once.
 * - `answers before BEGIN`: the first attempt fails while its transaction waits for a connection, which comes behind the answer.
 * - `step inside`: it takes a step while another one, or its transaction, is open, and goes on without.
 */
export type Way = 'plain' | (typeof MISTAKES)[number]

export const MISTAKES = ['tries again', 'lets go', 'writes nothing', 'answers before BEGIN', 'step inside'] as const

export interface ServiceSettings {
  readonly dialect: DialectName
  /** Of the database, by a way that may lose what it likes. */
  readonly commandsUri: string
  readonly applicationUri: string
  /** The same through a pooler, if there is one. */
  readonly pooledUri: string | undefined
  /** To write down what happens, whatever befalls the others. */
  readonly journalUri: string
  readonly sealingKey: string
}

/** A header: nothing is claimed, and the transaction takes the key. */
export const CLAIMS_NOTHING = 'x-claims-nothing'

/** A header: how the service uses the database, other than usual. */
export const CLIENT = 'x-client'

/**
 * - `pooled`: through a pooler, which gives a connection of the database to a client for one transaction.
 * - `hasty`: a client that does not wait for the work of a transaction when its limit is reached.
 * - `careless`: a transaction is open on each connection of the store's pool.
 */
export type ClientName = 'usual' | 'pooled' | 'hasty' | 'careless'

/** A header: what the handler does in a scene. */
export const ACT = 'x-act'

/**
 * - `acts`: writes its effect in a transaction, which completes the record.
 * - `reads before`: the same, but it is declined where its effect is there already.
 * - `declines`: a refusal, and nothing is written.
 * - `acts outside`: writes its effect without a transaction; `… and breaks`: and has no answer.
 * - `commits itself`: ends the transaction in its midst, and begins another one on its connection.
 * - `writes nothing`: answers in a transaction without an effect.
 */
export type Act =
  | 'acts'
  | 'reads before'
  | 'declines'
  | 'acts outside'
  | 'acts outside and breaks'
  | 'commits itself'
  | 'writes nothing'

export const LEASE_MS = 2_000
