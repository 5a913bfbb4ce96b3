import type { RequestListener } from 'node:http'
import type { RequestHandler } from 'express'
import type { Work } from './payout.js'

/** What protects the work, or nothing: one variant of the benchmark, running in a service. */
export type Protection = (ExpressRoute | OtherApplication) & {
  /** Puts so many completed records into its store. */
  fill?(count: number): Promise<void>
  close?(): Promise<unknown>
}

interface ExpressRoute {
  /** The route's handlers in Express 5, body parser aside. */
  readonly handlers: readonly RequestHandler[]
}

/** Of another framework, with its route. */
interface OtherApplication {
  readonly listener: RequestListener
}

/** The servers that a protection may use. */
export interface Servers {
  readonly redisPort: number
  /** Of one node of a cluster; absent where none is measured. */
  readonly redisClusterPort?: number
  /** Of an empty database; absent where nothing is measured in Postgres. */
  readonly postgresUrl?: string
  /** The same, in MariaDB. */
  readonly mysqlUrl?: string
}

export interface Ground extends Servers {
  /** Only a floor may care: it does the least for what is measured. */
  readonly phase: Phase
}

/** First executions (each request with a key of its own), or replays (of answers that are stored). */
export type Phase = 'first' | 'replay'

export type Open = (work: Work, ground: Ground) => Promise<Protection>

export const MERCHANT = 'x-merchant'
export const KEY = 'idempotency-key'
export const RETENTION_MS = 24 * 3_600_000
