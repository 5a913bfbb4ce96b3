import { warnOnce } from '../../src/core/index.js'
import type { TransactionOptionsOf } from '../sql/client-transactions.js'
import { PoolTurns } from '../sql/clients.js'
import { SqlStore } from '../sql/sql-store.js'
import { isEnded } from './client.js'
import { PostgresDatabase } from './database.js'
import { PostgresStoreError } from './errors.js'
import { PostgresTransactionStatements } from './in-transaction.js'
import { type PostgresStoreOptions, readOptions, readSchema, type SchemaOptions } from './options.js'
import { PostgresRecordTable } from './record-table.js'
import { migrationSql, schemaSql, selectInstalledSql } from './schema.js'
import { type AnyTransactions, type TxOf, toTransactionRunner } from './transactions.js'

/**
 * Keeps records in Postgres 14 or later, for many processes. Each record is a row, and each statement a transaction of its own: no
 * functions in the database, no locks between commands. Works through PgBouncer in transaction mode, and with any default
 * isolation level. A command that the store has confirmed survives a crash of the server.
 *
 * @example
 * const store = new PostgresStore({ pool: new Pool({ connectionString: process.env.DATABASE_URL, max: 4 }) })
 * await store.migrate()
 */
export class PostgresStore<Given extends AnyTransactions = AnyTransactions> extends SqlStore<
  TxOf<Given>,
  TransactionOptionsOf<Given>
> {
  readonly #database: PostgresDatabase

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: PostgresStoreOptions<Given>) {
    const { pool, query, schema, sweeps, prepares, transactions } = readOptions(options)
    if (pool !== undefined && pool === transactions) warnOnce('ONCE_PER_KEY_SHARED_POOL', SHARED_POOL)
    const turns = new PoolTurns('max', PostgresStoreError)
    const database = new PostgresDatabase({ pool, query }, schema, turns, prepares)
    const table = new PostgresRecordTable(database, schema)
    const opened = transactions && toTransactionRunner(transactions, prepares)
    super({
      name: 'PostgresStore',
      place: schema,
      table,
      turns,
      transactions: opened && new PostgresTransactionStatements(opened, table, schema),
      sweeps,
      isClientClosed: () => pool !== undefined && isEnded(pool),
    })
    this.#database = database
  }

  /**
   * The SQL for everything that the store needs in its database, for a migration tool; safe to run repeatedly. The role
   * that runs it owns the tables. If the store connects as another role, that role needs USAGE on the schema, and
   * SELECT, INSERT, UPDATE and DELETE on its tables.
   *
   * @throws IdempotencyError `options_invalid`.
   */
  static schemaSql(options: SchemaOptions = {}): string {
    return schemaSql(readSchema(options))
  }

  /**
   * Creates the tables if they do not exist. Safe from many processes at once.
   *
   * @throws PostgresStoreError `permission_denied`: this role may not create the schema; run `schemaSql()` as a role
   * that may. Nothing was changed.
   */
  async migrate(): Promise<void> {
    const [row] = await this.#database.queryRows({ text: selectInstalledSql(this.place), values: [] })
    if (row?.installed !== '1') await this.#database.queryRows({ text: migrationSql(this.place), values: [] })
  }
}

const SHARED_POOL =
  'The options `pool` and `transactions` of PostgresStore are the same pool: handlers that wait in transactions take the connections of ' +
  "the store's commands, which renew and end their runs. Give the store a small pool of its own. This is printed once."
