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
  warnOnce,
} from '../../src/core/index.js'
import { PoolTurns } from '../sql/clients.js'
import { SweepTimer } from '../sql/sweep-timer.js'
import { isEnded } from './client.js'
import { PostgresDatabase } from './database.js'
import { PostgresStoreError } from './errors.js'
import { PostgresTransactionStatements } from './in-transaction.js'
import { type PostgresStoreOptions, readOptions, readSchema, type SchemaOptions } from './options.js'
import { type Row, readBeginReply, readCommandReply, readInspectReply, readInteger, readListReply } from './reply.js'
import { migrationSql, REVISION, schemaSql } from './schema/schema.js'
import { createStatements, type Statement, type Statements } from './statements.js'
import { BLOCKS_A_STEP, sweepAll, sweepStepIfDue } from './sweeps.js'
import {
  type AnyTransactions,
  createUnclaimedCommands,
  type TransactionOptionsOf,
  type TxOf,
  toOpenedTransactions,
} from './transactions.js'

/**
 * Keeps records in Postgres 14 or later, for many processes. Each record is a row, and each command a database
 * function: one statement and one round trip. Works through PgBouncer in transaction mode, and with any default
 * isolation level. A command that the store has confirmed survives a crash of the server.
 *
 * @example
 * const store = new PostgresStore({ pool: new Pool({ connectionString: process.env.DATABASE_URL, max: 4 }) })
 * await store.migrate()
 */
export class PostgresStore<Given extends AnyTransactions = AnyTransactions> implements Store {
  /** The schema. */
  readonly place: string
  /** For `effects: 'in-transaction'`, which needs the option `transactions`. */
  readonly unclaimed: Unclaimed | undefined
  readonly #turns: PoolTurns
  readonly #database: PostgresDatabase
  readonly #statements: Statements
  readonly #sweeps: boolean
  readonly #timer: SweepTimer
  /** `undefined`: the application did not give `transactions`. */
  readonly #transactions: PostgresTransactionStatements<unknown, unknown> | undefined
  readonly #listeners: ((event: StoreEvent) => void)[] = []

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: PostgresStoreOptions<Given>) {
    const { client, schema, sweeps, prepares, transactions } = readOptions(options)
    if ('pool' in client && client.pool === transactions) warnOnce('ONCE_PER_KEY_SHARED_POOL', SHARED_POOL)
    this.place = schema
    this.#turns = new PoolTurns((event) => this.#emit(event), 'max', PostgresStoreError)
    this.#database = new PostgresDatabase(client, schema, this.#turns, prepares)
    this.#statements = createStatements(schema)
    this.#transactions =
      transactions &&
      new PostgresTransactionStatements(toOpenedTransactions(transactions, prepares), this.#statements, schema)
    this.unclaimed = transactions && createUnclaimedCommands((...sent) => this.#sendCommand(...sent), this.#statements)
    this.#sweeps = sweeps
    this.#timer = new SweepTimer({
      step: (pace) => sweepStepIfDue(this.#database, this.#statements, pace),
      isOver: () => 'pool' in client && isEnded(client.pool),
      onFailure: (error) => this.#emit({ type: 'sweep_failed', error: error as PostgresStoreError }),
    })
  }

  /**
   * The SQL for everything that the store needs in its database, for a migration tool; safe to run repeatedly. The role
   * that runs it owns the objects; if the store connects as another role, that role needs USAGE on the schema, and
   * SELECT, INSERT, UPDATE and DELETE on its tables.
   *
   * @throws IdempotencyError `options_invalid`.
   */
  static schemaSql(options: SchemaOptions = {}): string {
    return schemaSql(readSchema(options))
  }

  /**
   * Brings the schema up to date; does nothing if it is current or newer. Safe from many processes at once, and while
   * others run an older or a newer version of the library.
   *
   * @throws PostgresStoreError `permission_denied`: this role may not create the schema; run `schemaSql()` as a role
   * that may. Nothing was changed.
   */
  async migrate(): Promise<void> {
    if ((await this.#readRevision()) >= REVISION) return
    await this.#database.queryRows({ text: migrationSql(this.place), values: [] })
  }

  async begin(key: string, claim: Claim): Promise<BeginReply> {
    return readBeginReply(await this.#sendCommand(this.#statements.begin(key, claim), true))
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    return readCommandReply(await this.#sendCommand(this.#statements.renew(key, own)))
  }

  async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    return readCommandReply(await this.#sendCommand(this.#statements.complete(key, own)))
  }

  async release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return readCommandReply(await this.#sendCommand(this.#statements.release(key, own), true))
  }

  /**
   * Runs `work` in a transaction whose last statement completes the run's record: the writes of `work` are committed
   * if, and only if, the record is completed. The handler must send its response inside `work`; it is held until after
   * the COMMIT.
   *
   * Resolves with the result of `work`, after the COMMIT; if the answer is a failure, after the rollback. `options` are
   * the client's own, and `allowEmpty`: by default, a transaction in which nothing was written is rolled back.
   *
   * @example
   * await store.transaction(req.idempotency, async (tx) => {
   *   await tx.query('INSERT INTO payouts …')
   *   res.status(201).json(payout)
   * })
   *
   * @throws IdempotencyError for misuse, and PostgresStoreError `nothing_written`: nothing was committed. What `work` throws,
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
   * @throws IdempotencyError for misuse: nothing was committed. PostgresStoreError `record_taken`, `record_absent`,
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
      const own = second as Parameters<Statements['recordStep']>[1]
      return readCommandReply(await this.#sendCommand(this.#statements.recordStep(first, own)))
    }
    return step(this, first, second as string, this.#requireTransactions(), work as (tx: unknown) => unknown, options)
  }

  /**
   * Completes the record of a run by hand, as the last statement of a transaction that your code opened itself. When
   * the run ends, it sends what the record says: this answer if the transaction was committed, whatever response the
   * handler wrote, and 503 if it was not.
   *
   * In a runner's function, `answer` is the result: `completeIn<Payout>(tx, context, payout)`.
   *
   * @throws IdempotencyError for misuse; PostgresStoreError `nothing_written`, `record_taken`, `record_absent`,
   * `record_ended`: the transaction cannot be committed.
   */
  async completeIn<Answer = GivenAnswer>(
    tx: TxOf<Given>,
    context: ActingContext | undefined,
    answer: GivenByHand<Answer>,
  ): Promise<void> {
    const transactions = this.#requireTransactions()
    await completeByHand(this, context, answer, (key, completion) => transactions.completeByHand(tx, key, completion))
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    return readInspectReply(await this.#database.queryRow(this.#statements.inspect(key)))
  }

  async resolve(key: string, resolution: Resolution): Promise<CommandReply> {
    return readCommandReply(await this.#database.queryRow(this.#statements.resolve(key, resolution)))
  }

  async forget(key: string, forgetting: Forgetting): Promise<CommandReply> {
    return readCommandReply(await this.#database.queryRow(this.#statements.forget(key, forgetting)))
  }

  async listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return readListReply(
      await this.#database.queryRows(this.#statements.listScope(scope, Number(from ?? '0'), BLOCKS_A_STEP)),
    )
  }

  async list(from: string | null): Promise<ListedRecords> {
    return readListReply(await this.#database.queryRows(this.#statements.list(Number(from ?? '0'), BLOCKS_A_STEP)))
  }

  /** Removes all expired rows now. Resolves with their number. */
  sweep(): Promise<number> {
    return sweepAll(this.#database, this.#statements)
  }

  observe(listener: (event: StoreEvent) => void, storeTimeoutMs?: number): void {
    this.#turns.limitWait(storeTimeoutMs)
    this.#listeners.push(safeListener(listener))
  }

  #requireTransactions(): PostgresTransactionStatements<unknown, unknown> {
    if (this.#transactions === undefined) throw transactionsMissingError('the PostgresStore')
    return this.#transactions
  }

  async #sendCommand(statement: Statement, isUrgent?: boolean): Promise<Row> {
    const row = await this.#database.queryRow(statement, isUrgent)
    // Only after the first successful command: before it the table may not exist.
    if (this.#sweeps) this.#timer.start()
    return row
  }

  /** 0: the schema does not exist. */
  async #readRevision(): Promise<number> {
    try {
      return readInteger(await this.#database.queryRow(this.#statements.revision()), 'revision')
    } catch (error) {
      if (error instanceof PostgresStoreError && error.code === 'schema_missing') return 0
      throw error
    }
  }

  #emit(event: StoreEvent): void {
    for (const emit of this.#listeners) emit(event)
  }
}

const SHARED_POOL =
  'The options `pool` and `transactions` of PostgresStore are the same pool: handlers that wait in transactions take the connections of ' +
  "the store's commands, which renew and end their runs. Give the store a small pool of its own. This is printed once."
