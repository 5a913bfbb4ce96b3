import type { PostgresStore, PostgresTransactions } from 'once-per-key/postgres'

/** A client with the store of its recipe, and what an application does by the client's own means. */
export interface ClientOnTrial<Tx, Options> {
  readonly store: PostgresStore<PostgresTransactions<Tx, Options>>
  readonly transactions: PostgresTransactions<Tx, Options>
  /** What `transaction` is given for an isolation level. */
  readonly isolation: Readonly<Record<'repeatable read' | 'serializable', Options>>
  /** Runs a statement in a transaction; resolves with the rows. */
  query(tx: Tx, sql: string): PromiseLike<unknown>
  /** The client's own savepoint, or nested transaction: undone where the work rejects. */
  savepoint(tx: Tx, work: (inner: Tx) => Promise<void>): Promise<unknown>
  /** The client's own call that commits, where what the work receives has one. */
  commit?(tx: Tx): PromiseLike<unknown> | undefined
  /** Where an application finds the SQLSTATE of an error. */
  sqlStateOf(error: unknown): unknown
  /** It does so where a statement is sent in a session that the database has ended; the page says it. */
  readonly endsTheProcess: boolean
  close(): Promise<unknown>
}

/** With the types of a recipe's `transactions`. */
export type ClientOf<Recipe> = Recipe extends {
  readonly transactions: PostgresTransactions<infer Tx, infer Options>
}
  ? ClientOnTrial<Tx, Options>
  : never

// biome-ignore lint/suspicious/noExplicitAny: the tests hand on what a client gives out
export type AnyClient = ClientOnTrial<any, any>
