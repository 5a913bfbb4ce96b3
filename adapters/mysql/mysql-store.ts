import {
  type ActingContext,
  type Answer,
  type AsResult,
  type BeginReply,
  type Claim,
  type CommandReply,
  completeByHand,
  type Forgetting,
  type GivenAnswer,
  type GivenByHand,
  type IdempotencyRecord,
  type JsonOf,
  type ListedRecords,
  machine,
  type Ownership,
  type Resolution,
  readAllowEmpty,
  type StepChange,
  type Store,
  type StoreEvent,
  safeListener,
  step,
  transact,
  transactionsMissingError,
  type Unclaimed,
  type WithAllowEmpty,
  type WithResult,
} from '../../src/core/index.js'
import { PoolTurns } from '../sql/clients.js'
import { SweepTimer } from '../sql/sweep-timer.js'
import { isEnded } from './connection/client.js'
import { MySqlDatabase } from './connection/database.js'
import { MySqlStoreError } from './errors.js'
import { type MySqlStoreOptions, readOptions, readPrefix, type SchemaOptions } from './options.js'
import { createUnclaimedCommands, MySqlRecords } from './rows/records.js'
import { createRowStatements } from './rows/statements.js'
import { buildSchemaStatements, schemaSql } from './rows/table.js'
import { TableWalker } from './rows/walks.js'
import type { AnyTransactions, TransactionOptionsOf, TxOf } from './transactions/clients.js'
import { MySqlTransactionStatements } from './transactions/in-transaction.js'

/**
 * Keeps records in MySQL 8.0.19 or later, or in MariaDB 10.6 or later, for many processes. Each record is a row, and each statement a
 * transaction of its own: no stored procedures, no locks between commands, any default isolation level. A command that the store has
 * confirmed survives a crash of the server, as far as the server's `innodb_flush_log_at_trx_commit` is 1.
 *
 * @example
 * const store = new MySqlStore({ pool: createPool({ uri: process.env.DATABASE_URL, connectionLimit: 4 }) })
 * await store.migrate()
 */
export class MySqlStore<Given extends AnyTransactions = AnyTransactions> implements Store {
  /** The prefix. */
  readonly place: string
  /** For `effects: 'in-transaction'`, which needs the option `transactions`. */
  readonly unclaimed: Unclaimed | undefined
  readonly #turns: PoolTurns
  readonly #database: MySqlDatabase
  readonly #records: MySqlRecords
  /** Of claims, looks and releases. */
  readonly #urgent: MySqlRecords
  readonly #walks: TableWalker
  readonly #sweeps: boolean
  readonly #timer: SweepTimer
  /** `undefined`: the application did not give `transactions`. */
  readonly #transactions: MySqlTransactionStatements | undefined
  readonly #listeners: ((event: StoreEvent) => void)[] = []

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: MySqlStoreOptions<Given>) {
    const { pool, prefix, sweeps, transactions } = readOptions(options)
    this.place = prefix
    this.#turns = new PoolTurns((event) => this.#emit(event), 'connectionLimit', MySqlStoreError)
    this.#database = new MySqlDatabase(pool, prefix, this.#turns)
    const statements = createRowStatements(prefix)
    this.#records = new MySqlRecords(this.#database, statements)
    this.#urgent = new MySqlRecords(this.#database, statements, true)
    this.#walks = new TableWalker(this.#database, statements)
    this.#transactions =
      transactions && new MySqlTransactionStatements(transactions, this.#database, statements, this.#records)
    this.unclaimed = transactions && createUnclaimedCommands(this.#records, this.#urgent)
    this.#sweeps = sweeps
    this.#timer = new SweepTimer({
      step: (pace) => this.#walks.sweepStepIfDue(pace),
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
    for (const sql of buildSchemaStatements(this.place)) await this.#database.define(sql)
  }

  async begin(key: string, claim: Claim): Promise<BeginReply> {
    return this.#startSweepsAfter(this.#urgent.begin(key, claim))
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    const { token, leaseMs, retentionMs, fingerprint } = own
    if (await this.#records.renewIfInFlight(key, token, leaseMs, retentionMs)) return { ok: true }
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
    return this.#urgent.change(key, (record, now) => machine.release(record, own, now), own.fingerprint)
  }

  /**
   * Runs `work` in a transaction whose last statement completes the run's record: the writes of `work` are committed
   * if, and only if, the record is completed. The handler must send its response inside `work`; it is held until after
   * the COMMIT. No statement in `work` may commit: DDL does.
   *
   * Resolves with the result of `work`, after the COMMIT; if the answer is a failure, after the rollback. `options` are
   * the client's own, and `allowEmpty`: by default, a transaction in which no statement that writes was sent is rolled back.
   *
   * @example
   * await store.transaction(req.idempotency, async (tx) => {
   *   await tx.query('INSERT INTO payouts …')
   *   res.status(201).json(payout)
   * })
   *
   * @throws IdempotencyError for misuse, and MySqlStoreError `nothing_written`: nothing was committed. What `work` throws,
   * and errors of the database: everything was rolled back, the answer was discarded, and the run continues, so the handler may open another
   * transaction. If a COMMIT could not be resolved before `maxRunMs` ended, its error: the client was told to retry.
   */
  async transaction<Value>(
    context: ActingContext | undefined,
    work: (tx: TxOf<Given>) => Value | Promise<Value>,
    options?: WithAllowEmpty<TransactionOptionsOf<Given>>,
  ): Promise<Value> {
    const { allowEmpty, clients } = readAllowEmpty(options)
    const given = work as (tx: unknown) => Value | Promise<Value>
    return transact(this, context, this.#requireTransactions(), given, clients, allowEmpty)
  }

  /**
   * A step of a run whose result commits with its writes: it runs exactly once. If an attempt has recorded the label,
   * resolves with its result, and does not call `work`. The record is locked during the transaction, so no other attempt
   * can take it over. From then on the outcome counts as unknown, until the run is completed. Resolves after the COMMIT,
   * with the result of `work` as JSON; `options` are the client's own, and `result: { encode, decode }`.
   *
   * @example await store.step(req.idempotency, 'reserve', (tx) => reserve(tx, order))
   *
   * @throws IdempotencyError for misuse: nothing was committed. MySqlStoreError `record_taken`, `record_absent`,
   * `record_ended`: this attempt does not own the record, and nothing was committed. What `work` throws: it was rolled
   * back.
   */
  step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: TxOf<Given>) => (Value & JsonOf<Value>) | Promise<Value & JsonOf<Value>>,
    options?: TransactionOptionsOf<Given>,
  ): Promise<Value>
  /** The same for type parameters. */
  step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: TxOf<Given>) => AsResult<Value> | Promise<AsResult<Value>>,
    options?: TransactionOptionsOf<Given>,
  ): Promise<Value>
  step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: TxOf<Given>) => Value | Promise<Value>,
    options: WithResult<TransactionOptionsOf<Given>, NoInfer<Value>>,
  ): Promise<Value>
  /** The store's own command: see `Store`. */
  step(key: string, own: Ownership & StepChange & { readonly leaseMs: number }): Promise<CommandReply>
  async step(first: unknown, second: unknown, work?: unknown, options?: unknown): Promise<unknown> {
    if (typeof first === 'string') {
      const own = second as Parameters<typeof machine.step>[1]
      return this.#records.step(first, own)
    }
    return step(this, first, second as string, this.#requireTransactions(), work as (tx: unknown) => unknown, options)
  }

  /**
   * Completes the record of a run by hand, as the last statement of a transaction that your code opened itself. When
   * the run ends, it sends what the record says: this answer if the transaction was committed, whatever response the
   * handler wrote, and 503 if it was not. It cannot see whether the effects were written in this transaction.
   *
   * In a runner's function, `answer` is the result: `completeIn<Payout>(tx, context, payout)`.
   *
   * @throws IdempotencyError for misuse; MySqlStoreError `nothing_written` (no transaction is open), `record_taken`, `record_absent`,
   * `record_ended`: roll the transaction back.
   */
  async completeIn<Answer = GivenAnswer>(
    tx: TxOf<Given>,
    context: ActingContext | undefined,
    answer: GivenByHand<Answer>,
  ): Promise<void> {
    const transactions = this.#requireTransactions()
    await completeByHand(this, context, answer, (key, completion, isAwaited) =>
      transactions.completeByHand(tx, key, completion, isAwaited),
    )
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
    return this.#walks.listUnknown(from)
  }

  /** Removes all expired rows now. Resolves with their number. */
  async sweep(): Promise<number> {
    return this.#walks.sweepAll()
  }

  observe(listener: (event: StoreEvent) => void, storeTimeoutMs?: number): void {
    this.#turns.limitWait(storeTimeoutMs)
    this.#listeners.push(safeListener(listener))
  }

  #requireTransactions(): MySqlTransactionStatements {
    if (this.#transactions === undefined) throw transactionsMissingError('the MySqlStore')
    return this.#transactions
  }

  async #complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    if (await this.#records.completeIfInFlight(key, own)) return { ok: true }
    return this.#records.change(key, (record, now) => machine.complete(record, own, now), own.fingerprint)
  }

  /** Sweeps only after the first command that succeeded: before it the tables may not exist. */
  async #startSweepsAfter<Reply>(command: Promise<Reply>): Promise<Reply> {
    const reply = await command
    if (this.#sweeps) this.#timer.start()
    return reply
  }

  #emit(event: StoreEvent): void {
    for (const emit of this.#listeners) emit(event)
  }
}
