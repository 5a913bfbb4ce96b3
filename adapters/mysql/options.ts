import { checkOptions, type OptionRule, optionRules } from '../../src/core/index.js'
import { coreOf, EXPECTED_POOL, isPool, type MySqlPool } from './connection/client.js'
import { type AnyTransactions, areTransactions, EXPECTED_TRANSACTIONS } from './transactions/clients.js'

export interface SchemaOptions {
  /**
   * The prefix of the tables' names. Stores with one prefix in one database share their records. Letters, digits and
   * underscores.
   * @default 'once_per_key_'
   */
  readonly prefix?: string | undefined
}

export interface MySqlStoreOptions<Given extends AnyTransactions = AnyTransactions> extends SchemaOptions {
  /**
   * A pool of `mysql2` or `mysql2/promise` for the store alone, with 2 to 5 connections to the primary: handlers would
   * hold those of a shared pool, and the store changes its sessions. The application opens and closes it.
   */
  readonly pool: MySqlPool

  /**
   * How the application opens transactions: another pool of `mysql2`, or `{ transaction, run }` of another client.
   * `completeIn` needs only `run`.
   * @default none: `transaction`, `step` and `completeIn` are misuse
   */
  readonly transactions?: Given | undefined

  /**
   * Whether this process removes expired rows in the background. If not, call `sweep()`.
   * @default true
   */
  readonly sweeps?: boolean | undefined
}

interface ReadOptions {
  readonly pool: MySqlPool
  readonly prefix: string
  readonly sweeps: boolean
  readonly transactions: AnyTransactions | undefined
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions(options: MySqlStoreOptions): ReadOptions {
  const given = (typeof options === 'object' && options !== null ? options : {}) as MySqlStoreOptions
  const { pool, prefix = DEFAULT_PREFIX, sweeps = true, transactions } = given
  const read = { pool, prefix, sweeps, transactions }
  const more = isSamePool(pool, transactions) ? [SAME_POOL] : []
  checkOptions('MySqlStore', given, read, RULES, { required: ['pool'], more })
  return read
}

/** @throws IdempotencyError `options_invalid`. */
export function readPrefix(options: SchemaOptions): string {
  const { prefix = DEFAULT_PREFIX } = options
  checkOptions('MySqlStore.schemaSql', options, { prefix }, { prefix: aPrefix })
  return prefix
}

function isSamePool(pool: unknown, transactions: unknown): boolean {
  return isPool(pool) && isPool(transactions) && coreOf(pool) === coreOf(transactions)
}

/** The store changes its sessions, which are then not the application's. */
const SAME_POOL =
  'transactions: expected another pool than `pool`, whose connections handlers would take from the commands that end their runs'

const DEFAULT_PREFIX = 'once_per_key_'

/** A name of a table has at most 64 characters. */
const aPrefix: OptionRule = (value) =>
  typeof value === 'string' && /^[a-z_][a-z0-9_]{0,47}$/i.test(value)
    ? null
    : 'letters, digits and underscores, at most 48 of them, that do not begin with a digit'

const RULES = {
  pool: (value: unknown) => (isPool(value) ? null : EXPECTED_POOL),
  prefix: aPrefix,
  transactions: (value: unknown) => (areTransactions(value) ? null : EXPECTED_TRANSACTIONS),
  sweeps: optionRules.oneOf(true, false),
}
