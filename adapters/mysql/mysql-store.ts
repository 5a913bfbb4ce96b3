import {
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  type Forgetting,
  type IdempotencyRecord,
  type ListedRecords,
  machine,
  type Ownership,
  type Resolution,
  type StepChange,
  type Store,
  type StoreEvent,
  safeListener,
} from '../../src/core/index.js'
import { SweepTimer } from '../sql/sweep-timer.js'
import { isEnded } from './client.js'
import { Database } from './database.js'
import { MySqlStoreError } from './errors.js'
import { type MySqlStoreOptions, readOptions, readPrefix, type SchemaOptions } from './options.js'
import { Records } from './records.js'
import { statementsOn } from './statements.js'
import { schemaSql, schemaStatements } from './table.js'
import { Walks } from './walks.js'

/**
 * Keeps records in MySQL 8.0.19 or later, or in MariaDB 10.6 or later, for many processes. Each record is a row, and each statement a
 * transaction of its own: no stored procedures, no locks between commands, any default isolation level. A command that the store has
 * confirmed survives a crash of the server, as far as the server's `innodb_flush_log_at_trx_commit` is 1.
 *
 * @example
 * const store = new MySqlStore({ pool: createPool({ uri: process.env.DATABASE_URL, connectionLimit: 4 }) })
 * await store.migrate()
 */
export class MySqlStore implements Store {
  /** The prefix. */
  readonly place: string
  readonly #database: Database
  readonly #records: Records
  readonly #walks: Walks
  readonly #sweeps: boolean
  readonly #timer: SweepTimer
  readonly #listeners: ((event: StoreEvent) => void)[] = []
  #waitingReportedAt = Number.NEGATIVE_INFINITY

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: MySqlStoreOptions) {
    const { pool, prefix, sweeps } = readOptions(options)
    this.place = prefix
    this.#database = new Database(pool, prefix, (waiting) => this.#reportWaiting(waiting))
    const statements = statementsOn(prefix)
    this.#records = new Records(this.#database, statements)
    this.#walks = new Walks(this.#database, statements)
    this.#sweeps = sweeps
    this.#timer = new SweepTimer({
      step: (pace) => this.#walks.sweepInTurn(pace),
      isOver: () => isEnded(pool),
      onFailure: (error) => this.#emit({ type: 'sweep_failed', error: error as MySqlStoreError }),
    })
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
    for (const sql of schemaStatements(this.place)) await this.#database.define(sql)
  }

  async begin(key: string, claim: Claim): Promise<BeginReply> {
    return this.#confirmed(this.#records.begin(key, claim))
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    const { token, leaseMs, retentionMs, fingerprint } = own
    if (await this.#records.renewed(key, token, leaseMs, retentionMs)) return { ok: true }
    return this.#records.change(key, (record, now) => machine.renew(record, own, now), fingerprint)
  }

  async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    try {
      return await this.#complete(key, own)
    } catch (error) {
      if (!(error instanceof MySqlStoreError) || error.code !== 'packet_too_large' || own.answer.body === null)
        throw error
      const reply = await this.#complete(key, { ...own, answer: { ...own.answer, body: null } })
      if (reply.ok) this.#emit({ type: 'answer_dropped' })
      return reply
    }
  }

  async release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return this.#records.change(key, (record, now) => machine.release(record, own, now), own.fingerprint)
  }

  async recordStep(key: string, own: Ownership & StepChange & { readonly leaseMs: number }): Promise<CommandReply> {
    return this.#records.change(key, (record, now) => machine.recordStep(record, own, now), own.fingerprint)
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    const { record, now } = await this.#records.find(key)
    return machine.inspect(record, now).reply
  }

  async resolve(key: string, resolution: Resolution): Promise<CommandReply> {
    return this.#records.change(key, (record, now) => machine.resolve(record, resolution, now))
  }

  async forget(key: string, forgetting: Forgetting): Promise<CommandReply> {
    return this.#records.change(key, (record, now) => machine.forget(record, forgetting, now))
  }

  async listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return this.#walks.listScope(scope, from)
  }

  async list(from: string | null): Promise<ListedRecords> {
    return this.#walks.list(from)
  }

  /** Removes all expired rows now. Resolves with their number. */
  async sweep(): Promise<number> {
    return this.#walks.sweepAll()
  }

  observe(listener: (event: StoreEvent) => void): void {
    this.#listeners.push(safeListener(listener))
  }

  async #complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    if (await this.#records.completed(key, own)) return { ok: true }
    return this.#records.change(key, (record, now) => machine.complete(record, own, now), own.fingerprint)
  }

  /** Sweeps only after the first command that succeeded: before it the tables may not exist. */
  async #confirmed<Reply>(command: Promise<Reply>): Promise<Reply> {
    const reply = await command
    if (this.#sweeps) this.#timer.start()
    return reply
  }

  #reportWaiting(waiting: number): void {
    const now = performance.now()
    if (now < this.#waitingReportedAt + WAITING_REPORT_EVERY_MS) return
    this.#waitingReportedAt = now
    this.#emit({ type: 'connections_exhausted', waiting, advice: POOL_ADVICE })
  }

  #emit(event: StoreEvent): void {
    for (const emit of this.#listeners) emit(event)
  }
}

const WAITING_REPORT_EVERY_MS = 10_000

const POOL_ADVICE =
  'Give the store its own pool, from which no handler takes connections. If it has one, raise its `connectionLimit`, and find out ' +
  'what keeps the database busy.'
