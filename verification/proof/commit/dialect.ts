import type { EventEmitter } from 'node:events'
import type { SqlStore } from 'once-per-key/postgres'
import type { Scene } from './scenery.js'

/** A row, in JavaScript's values. */
// biome-ignore lint/suspicious/noExplicitAny: whoever writes a statement knows its columns
export type Row = any
/** The pool of a client. */
export type Pool = object
/** A connection that is in a transaction. */
export type Tx = EventEmitter
export type TransactionStore = SqlStore<Tx, TransactionOptions> & { migrate(): Promise<void> }

export interface TransactionOptions {
  readonly isolation?: 'repeatable read' | 'serializable'
  /** Of a hasty client: behind this a connection is free. */
  readonly behind?: Promise<unknown>
  readonly limit?: AbortSignal
}

/** How the transactions of a store are opened, other than by a pool. */
export interface Transactions {
  transaction(work: (tx: Tx) => Promise<void>, options?: TransactionOptions): Promise<unknown>
  run(tx: Tx, statement: { readonly text: string; readonly values: readonly unknown[] }): Promise<unknown>
}

/** A database's server, which is the layer's own. */
export interface Server {
  readonly port: number
  /** Of a database in it. */
  readonly uri: string
  crash(): Promise<void>
  restart(): Promise<void>
  signal(signal: NodeJS.Signals): void
  close(): Promise<void>
}

/** Asks the database, as an operator does. Values stand for `?`. */
export type Query = (sql: string, values?: readonly unknown[]) => Promise<Row[]>

/** What differs between databases: all else of this layer and of its services is the same. */
export interface Dialect {
  startServer(): Promise<Server>
  /** In front of the server, for transactions, where the database has such a thing. */
  startPooler?(port: number): Promise<{ readonly uri: string; close(): Promise<void> }>

  // --- its client

  /** `connectMs`: how long a connection may take to come; `first`: a statement for each new one. */
  open(uri: string, size: number, connectMs: number, first?: string): Pool
  close(pool: Pool): Promise<unknown>
  createStore(pool: Pool, transactions?: Pool | Transactions): TransactionStore
  /** Values stand for `?`. */
  query(on: Pool | Tx, sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** Runs a statement of the store, as it is. */
  run: Transactions['run']
  connect(pool: Pool): Promise<Tx>
  /** `isGood`: otherwise it is closed. */
  release(tx: Tx, isGood: boolean): void
  /** The first statement of each connection of the application, and of the journal, which a crash must not shorten. */
  readonly firsts: { readonly application?: string; readonly journal?: string }

  // --- its statements

  /** What those of the store are recognized by on their way. */
  readonly texts: Readonly<Record<StatementOfStore, string>>
  /** The records: `name` without its scope, `state`, `attempt`, `status` and `body`. */
  readonly recordsSql: string
  /** Makes all records expired whose name is given. */
  readonly expireSql: string
  /** `number`: of transactions that wait for a lock. */
  readonly waitingSql: string
  /** So that a transaction may be inactive for as long as it likes. */
  readonly staysOpenSql?: string
  /** Finds nothing to write, and does not count as a write. */
  readonly writesNothingSql: string
  /** The table of records holds the key of a transaction that its own work has committed, for a day. */
  readonly keepsKeysOfCommits: boolean

  // --- its faults and scenes

  /** Ends some sessions. */
  endSessions(query: Query): Promise<void>
  /** Stops a session that is in a transaction, alone if it can. Resolves with what lets it go on; `null`: there was none. */
  stopSession(query: Query, server: Server): Promise<(() => void) | null>
  /** What no other database has. */
  readonly scenes: Readonly<Record<string, Scene>>
}

/**
 * - `claim`, `renew`, `update` (over a row that was read), `complete` and `fence`: of commands.
 * - `mark`: the first of a transaction.
 * - `take`: that by which a transaction takes its key.
 * - `completion`: the first of those that complete a record in flight in a transaction, and `completed`: that which writes it.
 * - `finish`: by which a transaction that has taken its key completes the record, and `commit`: which commits it.
 * - `result`: a part of the command that records the result of a step.
 */
export type StatementOfStore =
  | 'claim'
  | 'renew'
  | 'update'
  | 'complete'
  | 'fence'
  | 'mark'
  | 'take'
  | 'completion'
  | 'completed'
  | 'finish'
  | 'commit'
  | 'result'

/** Each loaded only where it is used. */
export const DIALECTS = {
  postgres: async (): Promise<Dialect> => (await import('./postgres.js')).postgres,
  mysql: async (): Promise<Dialect> => (await import('./mysql.js')).mysql,
} as const

export type DialectName = keyof typeof DIALECTS
