import { type OptionRule, type OptionTable, optionRules, resolveOptions } from '../../src/core/index.js'
import { aPoolOrFunctions } from '../sql/client-transactions.js'
import { EXPECTED_POOL, getCorePool, isPool, type MySqlPool } from './client.js'
import type { AnyTransactions } from './transactions.js'

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

interface MySqlStoreSettings {
  readonly pool: MySqlPool
  readonly prefix: string
  readonly sweeps: boolean
  readonly transactions: AnyTransactions | undefined
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions(options: MySqlStoreOptions): MySqlStoreSettings {
  return resolveOptions('MySqlStore', options ?? {}, OPTIONS)
}

/** @throws IdempotencyError `options_invalid`. */
export function readPrefix(options: SchemaOptions): string {
  return resolveOptions<MySqlStoreSettings>('MySqlStore.schemaSql', options, { prefix: OPTIONS.prefix }).prefix
}

function isSamePool(pool: unknown, transactions: unknown): boolean {
  return isPool(pool) && isPool(transactions) && getCorePool(pool) === getCorePool(transactions)
}

/** The store changes its sessions, which are then not the application's. */
const SAME_POOL =
  'transactions: expected another pool than `pool`, whose connections handlers would take from the commands that end their runs'

/** A name of a table has at most 64 characters. */
const findPrefixFault: OptionRule = (value) =>
  typeof value === 'string' && /^[a-z_][a-z0-9_]{0,47}$/i.test(value)
    ? null
    : 'letters, digits and underscores, at most 48 of them, that do not begin with a digit'

const OPTIONS: OptionTable<MySqlStoreSettings> = {
  pool: { rule: (value) => (isPool(value) ? null : EXPECTED_POOL), isRequired: true },
  prefix: { rule: findPrefixFault, default: 'once_per_key_' },
  transactions: {
    rule: aPoolOrFunctions(isPool, 'a pool of `mysql2` or `mysql2/promise`'),
    findConflicts: ({ pool, transactions }: MySqlStoreSettings) => (isSamePool(pool, transactions) ? [SAME_POOL] : []),
  },
  sweeps: { rule: optionRules.aBoolean, default: true },
}
