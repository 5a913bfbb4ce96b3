import type { Answer, CommandReply, Ownership } from '../../src/core/index.js'
import type { TransactionOptionsOf } from '../sql/client-transactions.js'
import { PoolTurns } from '../sql/clients.js'
import { SqlStore } from '../sql/sql-store.js'
import { isEnded } from './client.js'
import { MySqlDatabase } from './database.js'
import { MySqlStoreError } from './errors.js'
import { MySqlTransactionStatements } from './in-transaction.js'
import { type MySqlStoreOptions, readOptions, readPrefix, type SchemaOptions } from './options.js'
import { MySqlRecordTable } from './record-table.js'
import { buildSchemaStatements, schemaSql } from './schema.js'
import type { AnyTransactions, TxOf } from './transactions.js'

/**
 * Keeps records in MySQL 8.0.19 or later, or in MariaDB 10.6 or later, for many processes. Each record is a row, and each statement a
 * transaction of its own: no stored procedures, no locks between commands, any default isolation level. A command that the store has
 * confirmed survives a crash of the server, as far as the server's `innodb_flush_log_at_trx_commit` is 1.
 *
 * @example
 * const store = new MySqlStore({ pool: createPool({ uri: process.env.DATABASE_URL, connectionLimit: 4 }) })
 * await store.migrate()
 */
export class MySqlStore<Given extends AnyTransactions = AnyTransactions> extends SqlStore<
  TxOf<Given>,
  TransactionOptionsOf<Given>
> {
  readonly #database: MySqlDatabase

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: MySqlStoreOptions<Given>) {
    const { pool, prefix, sweeps, transactions } = readOptions(options)
    const turns = new PoolTurns('connectionLimit', MySqlStoreError)
    const database = new MySqlDatabase(pool, prefix, turns)
    const table = new MySqlRecordTable(database, prefix)
    super({
      name: 'MySqlStore',
      place: prefix,
      table,
      turns,
      transactions: transactions && new MySqlTransactionStatements(transactions, table, prefix),
      sweeps,
      isClientClosed: () => isEnded(pool),
    })
    this.#database = database
  }

  /**
   * The SQL for everything that the store needs in its database, for a migration tool; safe to run repeatedly. If the store connects as
   * another user than the one that runs it, that user needs SELECT, INSERT, UPDATE and DELETE on the two tables.
   *
   * @throws IdempotencyError `options_invalid`.
   */
  static schemaSql(options: SchemaOptions = {}): string {
    return schemaSql(readPrefix(options))
  }

  /**
   * Creates the tables that do not exist. Safe from many processes at once.
   *
   * @throws MySqlStoreError `permission_denied`: this user may not create them; run `schemaSql()` as one that may. Nothing was changed.
   */
  async migrate(): Promise<void> {
    for (const sql of buildSchemaStatements(this.place)) await this.#database.define(sql)
  }

  /** Without its body, if the server's `max_allowed_packet` has no room for it. */
  override async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    try {
      return await super.complete(key, own)
    } catch (error) {
      if (!(error instanceof MySqlStoreError) || error.code !== 'packet_too_large' || own.answer.body === null)
        throw error
      const reply = await super.complete(key, { ...own, answer: { ...own.answer, body: null } })
      if (reply.ok) this.emit({ type: 'answer_dropped' })
      return reply
    }
  }
}
