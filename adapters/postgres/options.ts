import { checkOptions, type OptionRule, optionRules } from '../../src/core/index.js'
import { EXPECTED_POOL, isPool, type PostgresPool, type PostgresQuery } from './client.js'
import { type AnyTransactions, areTransactions, EXPECTED_TRANSACTIONS } from './transactions.js'

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

interface ReadOptions {
  readonly client: { readonly pool: PostgresPool } | { readonly query: PostgresQuery }
  readonly schema: string
  readonly sweeps: boolean
  readonly prepares: boolean
  readonly transactions: AnyTransactions | undefined
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions(options: PostgresStoreOptions): ReadOptions {
  const given = typeof options === 'object' && options !== null ? options : {}
  const { pool, query, transactions } = given as PostgresStoreOptions
  const { schema = DEFAULT_SCHEMA, sweeps = true, prepares = false } = given as PostgresStoreOptions
  // One of the two is required: if both are missing, the message asks for a pool.
  const client = query === undefined ? { pool } : { query }
  const values = { ...client, schema, sweeps, prepares, transactions }
  const more = pool !== undefined && query !== undefined ? [ONE_TOO_MANY] : []
  if (prepares === true && pool === undefined && !isPool(transactions)) more.push(PREPARES_NOTHING)
  checkOptions('PostgresStore', given, values, RULES, { required: Object.keys(client), more })
  const of = query === undefined ? { pool: pool as PostgresPool } : { query }
  return { client: of, schema, sweeps, prepares, transactions }
}

/** @throws IdempotencyError `options_invalid`. */
export function readSchema(options: SchemaOptions): string {
  const { schema = DEFAULT_SCHEMA } = options
  checkOptions('PostgresStore.schemaSql', options, { schema }, { schema: aSchema })
  return schema
}

const DEFAULT_SCHEMA = 'once_per_key'

const ONE_TOO_MANY = 'pool: expected either `pool` or `query`, not both'

const PREPARES_NOTHING =
  'prepares: expected a Pool of `pg` as `pool` or `transactions`; other clients prepare by themselves'

/** At most 63 bytes, because Postgres truncates longer names; names with `pg_` are reserved. */
const aSchema: OptionRule = (value) =>
  typeof value === 'string' && /^(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(value)
    ? null
    : 'a name of letters, digits and underscores, at most 63 of them, that does not begin with pg_'

const aBoolean = optionRules.oneOf(true, false)

const RULES = {
  pool: (value: unknown) => (isPool(value) ? null : EXPECTED_POOL),
  query: optionRules.aFunction,
  schema: aSchema,
  transactions: (value: unknown) => (areTransactions(value) ? null : EXPECTED_TRANSACTIONS),
  sweeps: aBoolean,
  prepares: aBoolean,
}
