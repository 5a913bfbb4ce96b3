import { type OptionRule, optionRules, resolveOptions } from '../../src/core/index.js'

/** How a client opens transactions and runs statements in them. */
export interface ClientTransactions<Statement, Tx, Options> {
  /**
   * Opens a transaction, calls `work` with it, and commits when `work` has resolved; if it rejects, rolls back and
   * rejects. `options` are those given to `transaction` or `step`.
   */
  transaction(work: (tx: Tx) => Promise<void>, options?: Options): Promise<unknown>
  /**
   * Runs a statement in the transaction: either its `text` and its `values`, or as a tagged template with its `strings`. Resolves with
   * what the client returns.
   */
  run(tx: Tx, statement: Statement): Promise<unknown>
}

/** The options of a transaction on a pool. */
export interface PoolTransactionOptions {
  /** @default the session's own: READ COMMITTED in Postgres and REPEATABLE READ in MySQL, unless it was changed */
  readonly isolation?: keyof typeof ISOLATION | undefined
}

export type TransactionOptionsOf<Given> =
  // biome-ignore lint/suspicious/noExplicitAny: the statements of any database
  Given extends ClientTransactions<any, infer _Tx, infer Options> ? Options : PoolTransactionOptions

/**
 * The type of `tx`: the parameter of a client's `run`, or else what its `transaction` passes to the work; `Otherwise`: it is not two
 * functions, but a pool.
 */
export type TxOfFunctions<Given, Otherwise> = Given extends { run(tx: infer OfRun, statement: infer _): unknown }
  ? IsAny<OfRun> extends true
    ? OfWork<Given>
    : OfRun
  : Otherwise

type OfWork<Given> = Given extends { transaction(work: (tx: infer Tx) => Promise<void>, options?: infer _): unknown }
  ? Tx
  : never

/** Whether a type is `any`: a parameter without a declared type, which tells nothing. */
type IsAny<Type> = 0 extends 1 & Type ? true : false

/** The option `transactions`: `pool` says what `isPool` accepts. */
export function aPoolOrFunctions(isPool: (value: unknown) => boolean, pool: string): OptionRule {
  const functions = 'two functions of another client: { transaction: (work, options) => …, run: (tx, statement) => … }'
  return (value) => (isPool(value) || hasTransactionAndRun(value) ? null : `${pool}, or ${functions}`)
}

function hasTransactionAndRun(value: unknown): boolean {
  const { transaction, run } = Object(value) as { readonly transaction?: unknown; readonly run?: unknown }
  return typeof value === 'object' && typeof transaction === 'function' && typeof run === 'function'
}

/**
 * The option `isolation` of a transaction on a pool, in SQL; `undefined`: the session's own.
 *
 * @throws IdempotencyError `options_invalid`: a level that nobody knows must not become the session's own.
 */
export function toIsolationSql(options: PoolTransactionOptions | undefined): string | undefined {
  if (!options) return undefined
  const { isolation } = resolveOptions<typeof options>('transaction()', options, POOL_TRANSACTION_OPTIONS)
  return isolation && ISOLATION[isolation]
}

const ISOLATION = {
  'read committed': 'READ COMMITTED',
  'repeatable read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
} as const

const POOL_TRANSACTION_OPTIONS = { isolation: optionRules.oneOf(...Object.keys(ISOLATION)) }
