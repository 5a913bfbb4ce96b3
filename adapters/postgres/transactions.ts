import { hasTransactionAndRun, type TxOfFunctions, toIsolationSql } from '../sql/clients.js'
import {
  COMMIT,
  canPipeline,
  isDemoted,
  isPool,
  limitQuery,
  type PipedResult,
  type PostgresConnection,
  type PostgresPool,
  type SentStatement,
  sendOnConnection,
  sendPipelined,
  tryRollback,
  watchErrorsFromStart,
} from './client.js'
import { isLostConnection, PostgresStoreError } from './errors.js'
import type { Statement } from './sql.js'

/** How a client other than `pg` opens transactions and runs statements in them. */
export interface PostgresTransactions<Tx, Options = unknown> {
  /**
   * Opens a transaction, calls `work` with it, and commits when `work` has resolved; if it rejects, rolls back and
   * rejects. `options` are those given to `transaction` or `step`.
   */
  transaction(work: (tx: Tx) => Promise<void>, options?: Options): Promise<unknown>
  /**
   * Runs a statement in the transaction: either its `text` with `$1`, `$2` … and `values`, or as a tagged template with
   * its `strings`.
   */
  run(tx: Tx, statement: Statement): Promise<unknown>
}

/** The options of a transaction on a `pg` pool. */
export interface PoolTransactionOptions {
  /** @default the database's own: READ COMMITTED unless it was changed */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable' | undefined
}

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

export type TransactionOptionsOf<Given> =
  Given extends PostgresTransactions<infer _Tx, infer Options> ? Options : PoolTransactionOptions

export const EXPECTED_TRANSACTIONS =
  'a Pool of `pg`, or two functions of another client: { transaction: (work, options) => …, run: (tx, statement) => … }'

export function areTransactions(value: unknown): value is AnyTransactions {
  return isPool(value) || hasTransactionAndRun(value)
}

/** The transactions of a pool also show when the database ends a session. Those of other clients do not. */
export interface OpenedTransactions<Tx, Options> extends PostgresTransactions<Tx, Options> {
  sessionEnd?(tx: Tx): Promise<void> | undefined
  /** Runs two statements, in one round trip if it can. */
  runBoth?(tx: Tx, first: Statement, second: Statement): Promise<readonly unknown[]>
  /** Runs the last statement, and may send COMMIT behind it: then `transaction` sends none. */
  runLast?(tx: Tx, statement: Statement): Promise<unknown>
}

export function toOpenedTransactions(given: AnyTransactions, prepares: boolean): OpenedTransactions<unknown, unknown> {
  return (isPool(given) ? onPool(given, prepares) : given) as OpenedTransactions<unknown, unknown>
}

/**
 * Transactions on connections of a pool of `pg`. Our first statement is sent together with BEGIN, and the last one with COMMIT: a round
 * trip less each.
 */
function onPool(pool: PostgresPool, prepares: boolean): OpenedTransactions<PostgresConnection, PoolTransactionOptions> {
  watchErrorsFromStart(pool)
  const open = new WeakMap<PostgresConnection, ConnectionTransaction>()
  return {
    run: (tx, statement) => open.get(tx)?.run(statement) ?? sendOnConnection(tx, statement, prepares),
    runBoth: async (tx, first, second) => open.get(tx)?.runBoth(first, second) ?? [],
    runLast: async (tx, statement) => open.get(tx)?.runLast(statement),
    sessionEnd: (tx) => open.get(tx)?.end,

    async transaction(work, options) {
      const begin = buildBeginSql(options)
      const connection = await pool.connect()
      const on = new ConnectionTransaction(connection, begin, prepares)
      open.set(connection, on)
      let isGood = false
      try {
        await on.begin()
        await work(connection)
        await on.commit()
        isGood = true
      } catch (error) {
        isGood =
          on.isOver || (!isLostConnection(error) && !isDemoted(connection, error) && (await tryRollback(connection)))
        throw error
      } finally {
        on.close()
        open.delete(connection)
        connection.release(!isGood)
      }
    },
  }
}

class ConnectionTransaction {
  /** Resolves when the database has ended the session. */
  readonly end: Promise<void>
  readonly #connection: PostgresConnection
  readonly #begin: string
  readonly #pipes: boolean
  readonly #prepares: boolean
  #hasBegun = false
  #endedBy: { readonly error: unknown } | undefined
  /** The COMMIT that was sent with the last statement: its tag, or why it failed. */
  #commit: PipedResult | undefined
  #onEnd!: (error: unknown) => void

  constructor(connection: PostgresConnection, begin: string, prepares: boolean) {
    this.#connection = connection
    this.#begin = begin
    this.#pipes = canPipeline(connection)
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
    return !this.#hasBegun || (this.#commit !== undefined && 'command' in this.#commit)
  }

  /** Unless BEGIN waits for the first statement. */
  async begin(): Promise<void> {
    if (this.#pipes) return
    this.#hasBegun = true
    await limitQuery(this.#connection.query(this.#begin, []))
  }

  async run(statement: Statement): Promise<unknown> {
    if (this.#hasBegun) return sendOnConnection(this.#connection, statement, this.#prepares)
    this.#hasBegun = true
    const [begun, result = begun] = await limitQuery(
      sendPipelined(this.#connection, [{ text: this.#begin, values: [] }, this.#toSentStatement(statement)]),
    )
    return requireResult(result)
  }

  async runBoth(first: Statement, second: Statement): Promise<readonly unknown[]> {
    if (!this.#pipes) return [await this.run(first), await this.run(second)]
    const begin = this.#hasBegun ? [] : [{ text: this.#begin, values: [] }]
    this.#hasBegun = true
    const sent = [...begin, this.#toSentStatement(first), this.#toSentStatement(second)]
    return (await limitQuery(sendPipelined(this.#connection, sent))).map(requireResult).slice(begin.length)
  }

  /** The last statement, and COMMIT behind it; if it fails, COMMIT is not carried out. */
  async runLast(statement: Statement): Promise<unknown> {
    if (this.#endedBy !== undefined) throw sessionEndedError(this.#endedBy.error)
    if (!this.#pipes) return this.run(statement)
    const [result, commit] = await limitQuery(
      sendPipelined(this.#connection, [this.#toSentStatement(statement), COMMIT]),
    )
    this.#commit = commit
    return requireResult(result)
  }

  #toSentStatement({ text, values, name }: Statement): SentStatement {
    return this.#prepares ? { text, values, name } : { text, values }
  }

  async commit(): Promise<void> {
    if (!this.#hasBegun) return
    this.#commit ??= {
      rows: [],
      command: String(getCommandTag(await limitQuery(this.#connection.query('COMMIT', [])))),
    }
    const { command } = requireResult(this.#commit)
    if (command !== 'COMMIT') throw rolledBackAtCommitError()
  }

  close(): void {
    this.#connection.off('error', this.#onEnd)
  }
}

function requireResult(result: PipedResult | undefined): Exclude<PipedResult, { readonly error: unknown }> {
  if (result === undefined)
    throw new PostgresStoreError('connection_lost', 'The database did not answer the statement.')
  if ('error' in result) throw result.error
  return result
}

function buildBeginSql(options: PoolTransactionOptions | undefined): string {
  const isolation = toIsolationSql(options)
  return isolation === undefined ? 'BEGIN' : `BEGIN ISOLATION LEVEL ${isolation}`
}

function getCommandTag(result: unknown): unknown {
  return (result as { readonly command?: unknown } | null)?.command
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
