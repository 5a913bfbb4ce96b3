import {
  type ClientTransactions,
  type PoolTransactionOptions,
  type TxOfFunctions,
  toIsolationSql,
} from '../sql/client-transactions.js'
import { isDemoted, runOnConnection } from '../sql/clients.js'
import {
  COMMIT,
  canPipeline,
  FailedStatement,
  isPool,
  type PipedResult,
  type PostgresConnection,
  type PostgresPool,
  requireResults,
  type StatementResult,
  sendAll,
  sendOnConnection,
  tryRollback,
  watchErrorsFromStart,
} from './client.js'
import { isLostConnection, isReadOnly, PostgresStoreError } from './errors.js'
import type { Statement } from './sql.js'

/** How a client other than `pg` opens transactions and runs statements in them: texts with `$1`, `$2` …, and values of text and bytes. */
export type PostgresTransactions<Tx, Options = unknown> = ClientTransactions<Statement, Tx, Options>

/** The types that the option `transactions` accepts. */
// biome-ignore lint/suspicious/noExplicitAny: the types of whichever client is given are read from it
export type AnyTransactions = PostgresPool | PostgresTransactions<any, any>

/**
 * The type of `tx`: the parameter of a client's `run`, or else what its `transaction` passes to the work; for a pool,
 * its connections.
 */
export type TxOf<Given> = TxOfFunctions<
  Given,
  // biome-ignore lint/suspicious/noExplicitAny: `connect` of `pg` has an overload with a callback
  Given extends { connect: { (): Promise<infer Client>; (callback: any): any } }
    ? Client
    : Given extends { connect(): Promise<infer Client> }
      ? Client
      : never
>

/** How the transactions of a client are opened and used. Those of a pool also save round trips, and tell when their session ends. */
export interface TransactionRunner<Tx = unknown, Options = unknown> {
  transaction(work: (tx: Tx) => Promise<void>, options?: Options): Promise<unknown>
  /** In one round trip if it can. `isLast`: COMMIT may be sent behind them, and then `transaction` sends none. */
  runAll(tx: Tx, statements: readonly Statement[], isLast: boolean): Promise<readonly unknown[]>
  readonly commitsWithLast: boolean
  /** Resolves when the database ends the session. */
  sessionEnd(tx: Tx): Promise<void> | undefined
}

export function toTransactionRunner(given: AnyTransactions, prepares: boolean): TransactionRunner {
  return isPool(given) ? createPoolTransactions(given, prepares) : createClientTransactions(given)
}

/** Uses the two functions alone, whatever else the application's object has. */
function createClientTransactions(client: PostgresTransactions<unknown>): TransactionRunner {
  return {
    transaction: (work, options) => client.transaction(work, options),
    async runAll(tx, statements) {
      const results: unknown[] = []
      for (const each of statements) results.push(await client.run(tx, each))
      return results
    },
    commitsWithLast: false,
    sessionEnd: () => undefined,
  }
}

/**
 * Transactions on connections of a pool of `pg`. Our first statement is sent together with BEGIN, and the last one with COMMIT: a round
 * trip less each.
 */
function createPoolTransactions(
  pool: PostgresPool,
  prepares: boolean,
): TransactionRunner<PostgresConnection, PoolTransactionOptions> {
  watchErrorsFromStart(pool)
  const open = new WeakMap<PostgresConnection, ConnectionTransaction>()
  return {
    // The application decides how long it waits in a transaction of its own.
    runAll: (tx, statements, isLast) =>
      open.get(tx)?.run(statements, isLast) ??
      Promise.all(statements.map((each) => sendOnConnection(tx, each, prepares))),
    commitsWithLast: true,
    sessionEnd: (tx) => open.get(tx)?.end,

    async transaction(work, options) {
      const begin = buildBeginSql(options)
      const connection = await pool.connect()
      const on = new ConnectionTransaction(connection, begin, prepares)
      open.set(connection, on)
      const isGoodAfterError = (error: unknown) =>
        on.isOver || (!isLostConnection(error) && !isDemoted(connection, isReadOnly(error)) && tryRollback(connection))
      const giveBack = (isGood: boolean) => {
        on.close()
        open.delete(connection)
        connection.release(!isGood)
      }
      await runOnConnection(connection, () => work(connection).then(() => on.commit()), isGoodAfterError, giveBack)
    },
  }
}

class ConnectionTransaction {
  /** Resolves when the database has ended the session. */
  readonly end: Promise<void>
  readonly #connection: PostgresConnection
  readonly #begin: string
  readonly #prepares: boolean
  #hasBegun = false
  #endedBy: { readonly error: unknown } | undefined
  /** The COMMIT that was sent with the last statement: its tag, or why it failed. */
  #commit: PipedResult | undefined
  #onEnd!: (error: unknown) => void

  constructor(connection: PostgresConnection, begin: string, prepares: boolean) {
    this.#connection = connection
    this.#begin = begin
    this.#prepares = prepares
    this.end = new Promise((resolve) => {
      this.#onEnd = (error) => {
        this.#endedBy ??= { error }
        resolve()
      }
    })
    connection.on('error', this.#onEnd)
  }

  /** Nothing is open on the connection: nothing was begun, or the database has answered the COMMIT. */
  get isOver(): boolean {
    return !this.#hasBegun || (this.#commit !== undefined && !(this.#commit instanceof FailedStatement))
  }

  /** BEGIN goes in front of the first statement, and COMMIT behind the last one: if that fails, COMMIT is not carried out. */
  async run(statements: readonly Statement[], isLast: boolean): Promise<readonly unknown[]> {
    if (isLast && this.#endedBy !== undefined) throw sessionEndedError(this.#endedBy.error)
    const begin = this.#hasBegun ? [] : [{ text: this.#begin, values: [] }]
    this.#hasBegun = true
    const commit = isLast && canPipeline(this.#connection) ? [COMMIT] : []
    const results = await sendAll(this.#connection, [...begin, ...statements, ...commit], this.#prepares)
    const own = requireResults(results, begin.length + statements.length)
    if (commit.length > 0) this.#commit = results[own.length]
    return own.slice(begin.length)
  }

  async commit(): Promise<void> {
    if (!this.#hasBegun) return
    this.#commit ??= (await sendAll(this.#connection, [COMMIT], false))[0]
    const [{ command }] = requireResults([this.#commit as PipedResult], 1) as [StatementResult]
    if (command !== 'COMMIT') throw rolledBackAtCommitError()
  }

  close(): void {
    this.#connection.off('error', this.#onEnd)
  }
}

function buildBeginSql(options: PoolTransactionOptions | undefined): string {
  const isolation = toIsolationSql(options)
  return isolation === undefined ? 'BEGIN' : `BEGIN ISOLATION LEVEL ${isolation}`
}

/** No COMMIT was sent: unlike a connection that breaks behind it, that leaves nothing open. */
function sessionEndedError(cause: unknown): PostgresStoreError {
  return new PostgresStoreError(
    'transaction_rolled_back',
    'The database rolled the transaction back, because its session had ended before the record was completed.',
    { cause },
  )
}

/** The database replied ROLLBACK to COMMIT, without an error, because a statement of the transaction had failed. */
function rolledBackAtCommitError(): PostgresStoreError {
  return new PostgresStoreError(
    'transaction_rolled_back',
    'The database rolled the transaction back at COMMIT, because a statement in it had failed.',
  )
}
