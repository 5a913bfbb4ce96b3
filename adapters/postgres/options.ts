import { type OptionRule, type OptionTable, optionRules, resolveOptions } from '../../src/core/index.js'
import { aPoolOrFunctions } from '../sql/client-transactions.js'
import { EXPECTED_POOL, isPool, type PostgresPool, type PostgresQuery } from './client.js'
import type { AnyTransactions } from './transactions.js'

export interface SchemaOptions {
  /**
   * The schema of the records, which stores with the same schema share. Letters, digits and underscores.
   * @default 'once_per_key'
   */
  readonly schema?: string | undefined
}

type CommonOptions<Given> = SchemaOptions & {
  /**
   * How the application opens transactions: another `pg` pool, or `{ transaction, run }` of another client.
   * `completeIn` needs only `run`.
   * @default none: `transaction`, `step` and `completeIn` are misuse
   */
  readonly transactions?: Given | undefined

  /**
   * Whether this process removes expired rows in the background. If not, call `sweep()`.
   * @default true
   */
  readonly sweeps?: boolean | undefined

  /**
   * Whether statements on pools of `pg` are prepared, which spares the database CPU. Not through PgBouncer before 1.21,
   * or with `max_prepared_statements = 0`.
   * @default false
   */
  readonly prepares?: boolean | undefined
}

export type PostgresStoreOptions<Given extends AnyTransactions = AnyTransactions> = CommonOptions<Given> &
  (
    | {
        /**
         * A `pg` pool for the store alone, with 2 to 5 connections: handlers that hold all of a shared pool would
         * starve the commands that end them. The application opens and closes it.
         */
        readonly pool: PostgresPool
        readonly query?: never
      }
    | {
        /** For any other client. */
        readonly query: PostgresQuery
        readonly pool?: never
      }
  )

/** `pool` is not there where `query` is. */
interface PostgresStoreSettings {
  readonly pool: PostgresPool
  readonly query: PostgresQuery | undefined
  readonly schema: string
  readonly sweeps: boolean
  readonly prepares: boolean
  readonly transactions: AnyTransactions | undefined
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions(options: PostgresStoreOptions): PostgresStoreSettings {
  const isPoolRequired = Object(options).query === undefined // If both are missing, the message asks for a pool.
  const table = { ...OPTIONS, pool: { ...OPTIONS.pool, isRequired: isPoolRequired } }
  return resolveOptions('PostgresStore', options ?? {}, table)
}

/** @throws IdempotencyError `options_invalid`. */
export function readSchema(options: SchemaOptions): string {
  return resolveOptions<PostgresStoreSettings>('PostgresStore.schemaSql', options, { schema: OPTIONS.schema }).schema
}

const ONE_TOO_MANY = 'pool: expected either `pool` or `query`, not both'

const PREPARES_NOTHING =
  'prepares: expected a Pool of `pg` as `pool` or `transactions`; other clients prepare by themselves'

/** At most 63 bytes, because Postgres truncates longer names; names with `pg_` are reserved. */
const findSchemaFault: OptionRule = (value) =>
  typeof value === 'string' && /^(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(value)
    ? null
    : 'a name of letters, digits and underscores, at most 63 of them, that does not begin with pg_'

const { aBoolean, aFunction } = optionRules

const OPTIONS = {
  pool: { rule: (value) => (isPool(value) ? null : EXPECTED_POOL), findConflicts: findClientConflicts },
  query: aFunction,
  schema: { rule: findSchemaFault, default: 'once_per_key' },
  transactions: aPoolOrFunctions(isPool, 'a Pool of `pg`'),
  sweeps: { rule: aBoolean, default: true },
  prepares: { rule: aBoolean, default: false },
} as const satisfies OptionTable<PostgresStoreSettings>

function findClientConflicts(
  { prepares, transactions }: PostgresStoreSettings,
  { pool, query }: PostgresStoreSettings,
): string[] {
  const mistakes = pool !== undefined && query !== undefined ? [ONE_TOO_MANY] : []
  if (prepares === true && pool === undefined && !isPool(transactions)) mistakes.push(PREPARES_NOTHING)
  return mistakes
}
