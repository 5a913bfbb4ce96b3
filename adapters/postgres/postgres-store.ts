import {
  type ActingContext,
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  completeByHand,
  type GivenAnswer,
  type GivenByHand,
  type IdempotencyRecord,
  type ListedRecords,
  type Ownership,
  type Resolution,
  type Store,
  type StoreEvent,
  safeListener,
  step,
  transact,
  transactionsMissing,
} from '../../src/core/index.js'
import { isEnded } from './client.js'
import { Database } from './database.js'
import { PostgresStoreError } from './errors.js'
import { type PostgresStoreOptions, readOptions, readSchema, type SchemaOptions } from './options.js'
import { integer, type Row, readBegun, readDone, readInspected, readListed } from './reply.js'
import { migrationSql, REVISION, schemaSql } from './schema/schema.js'
import type { Statement } from './statement.js'
import { type Statements, statementsOf } from './statements.js'
import { BLOCKS_A_STEP, Sweeper } from './sweeper.js'
import {
  type AnyTransactions,
  type InClientsTransaction,
  type TransactionOptionsOf,
  type TxOf,
  transactionsOf,
} from './transactions.js'

/**
 * Keeps records in Postgres 14 or later, for many processes. A row a record, and a function of the database a command: one
 * statement and one round trip each, through PgBouncer in transaction mode as well, and whatever isolation level is the
 * database's default. A command that the store has confirmed survives a crash of the server.
 *
 * @example
 * const store = new PostgresStore({ pool: new Pool({ connectionString: process.env.DATABASE_URL, max: 4 }) })
 * await store.migrate()
 */
export class PostgresStore<Given extends AnyTransactions = AnyTransactions> implements Store {
  readonly #schema: string
  readonly #database: Database
  readonly #statements: Statements
  readonly #sweeper: Sweeper
  readonly #sweeps: boolean
  /** `undefined`: the application has not said how it opens transactions. */
  readonly #transactions: InClientsTransaction<unknown, unknown> | undefined
  readonly #listeners: ((event: StoreEvent) => void)[] = []
  #toldOfWaitingAt = Number.NEGATIVE_INFINITY

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: PostgresStoreOptions<Given>) {
    const { client, schema, sweeps, transactions } = readOptions(options)
    this.#schema = schema
    this.#database = new Database(client, schema, (waiting) => this.#tellOfWaiting(waiting))
    this.#statements = statementsOf(schema)
    this.#transactions = transactions && transactionsOf(transactions, this.#statements, schema)
    this.#sweeps = sweeps
    this.#sweeper = new Sweeper({
      statements: this.#statements,
      run: (statement) => this.#database.row(statement),
      isOver: () => 'pool' in client && isEnded(client.pool),
      onFailure: (error) => this.#tell({ type: 'sweep_failed', error }),
    })
  }

  /**
   * Everything that the store needs in its database, as a text of SQL for a migration tool; safe to run again. Who runs it
   * owns it; another role that the store connects as needs USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on
   * its tables.
   *
   * @throws IdempotencyError `options_invalid`.
   */
  static schemaSql(options: SchemaOptions = {}): string {
    return schemaSql(readSchema(options))
  }

  /**
   * Brings the schema up to date; does nothing where it is, or is newer. Safe from many processes at once, and while others
   * run an older or a newer version of the library.
   *
   * @throws PostgresStoreError `permission_denied`: this role may not create it; whoever may is to run `schemaSql()`.
   * Nothing was changed.
   */
  async migrate(): Promise<void> {
    if ((await this.#revision()) >= REVISION) return
    await this.#database.rows({ text: migrationSql(this.#schema), values: [] })
  }

  async begin(key: string, claim: Claim): Promise<BeginReply> {
    return readBegun(await this.#command(this.#statements.begin(key, claim)))
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    return readDone(await this.#command(this.#statements.renew(key, own)))
  }

  async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    return readDone(await this.#command(this.#statements.complete(key, own)))
  }

  async release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return readDone(await this.#command(this.#statements.release(key, own)))
  }

  /**
   * Runs `work` in a transaction that completes the record of a run with its last statement: the writes of `work` are committed
   * if, and only if, the record is completed. The handler answers inside of `work`; the answer leaves behind the COMMIT.
   *
   * Resolves with what `work` resolved with, behind the COMMIT; where its answer is a failure, behind the rollback. `options` are
   * the client's own.
   *
   * @example
   * await store.transaction(req.idempotency, async (tx) => {
   *   await tx.query('INSERT INTO payouts …')
   *   res.status(201).json(payout)
   * })
   *
   * @throws IdempotencyError for misuse: nothing was committed. What `work` throws, and errors of the database: everything was
   * rolled back, the answer was discarded, and the run goes on, so the handler may open another transaction. An error of a COMMIT
   * that nobody could resolve until `maxRunMs` was over: the client was told to come back.
   */
  async transaction<Value>(
    context: ActingContext | undefined,
    work: (tx: TxOf<Given>) => Value | Promise<Value>,
    options?: TransactionOptionsOf<Given>,
  ): Promise<Value> {
    return transact(this, context, this.#ofApplication(), work as (tx: unknown) => Value | Promise<Value>, options)
  }

  /**
   * Commits writes of a run that goes on, as often as wanted: the record is locked meanwhile, so no other attempt can take it,
   * and its outcome is unknown from then on, until it is completed. Resolves with what `work` resolved with, behind the COMMIT.
   *
   * @throws IdempotencyError for misuse: nothing was committed. PostgresStoreError `record_taken`, `record_absent`,
   * `record_ended`: this attempt does not own the record, and nothing was committed. What `work` throws: it was rolled back.
   */
  async step<Value>(
    context: ActingContext | undefined,
    work: (tx: TxOf<Given>) => Value | Promise<Value>,
    options?: TransactionOptionsOf<Given>,
  ): Promise<Value> {
    return step(this, context, this.#ofApplication(), work as (tx: unknown) => Value | Promise<Value>, options)
  }

  /**
   * Completes the record of a run by hand, as the last statement of a transaction that was opened elsewhere. At its end the run
   * sends what the record says: this answer where the transaction was committed, whatever the handler answers, and 503 where it
   * was not. In the function of a runner, `answer` is the result: `completeIn<Payout>(tx, context, payout)`.
   *
   * @throws IdempotencyError for misuse; PostgresStoreError `nothing_written`, `record_taken`, `record_absent`, `record_ended`:
   * the transaction cannot be committed.
   */
  async completeIn<Answer = GivenAnswer>(
    tx: TxOf<Given>,
    context: ActingContext | undefined,
    answer: GivenByHand<Answer>,
  ): Promise<void> {
    const { inside } = this.#ofApplication()
    await completeByHand(this, context, answer, (key, completion) => inside.completeByHand(tx, key, completion))
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    return readInspected(await this.#database.row(this.#statements.inspect(key)))
  }

  async resolve(key: string, resolution: Resolution): Promise<CommandReply> {
    return readDone(await this.#database.row(this.#statements.resolve(key, resolution)))
  }

  async list(from: string | null): Promise<ListedRecords> {
    const rows = await this.#database.rows(this.#statements.list(Number(from ?? '0'), BLOCKS_A_STEP))
    return readListed(rows)
  }

  /** Removes all rows that have expired, now. Resolves with how many there were. */
  sweep(): Promise<number> {
    return this.#sweeper.sweepAll()
  }

  observe(listener: (event: StoreEvent) => void): void {
    this.#listeners.push(safeListener(listener))
  }

  #ofApplication(): InClientsTransaction<unknown, unknown> {
    if (this.#transactions === undefined) throw transactionsMissing('the PostgresStore')
    return this.#transactions
  }

  async #command(statement: Statement): Promise<Row> {
    const row = await this.#database.row(statement)
    // Behind the first command that got through: before it there may be no table.
    if (this.#sweeps) this.#sweeper.start()
    return row
  }

  /** 0: it is not there. */
  async #revision(): Promise<number> {
    try {
      return integer(await this.#database.row(this.#statements.revision()), 'revision')
    } catch (error) {
      if (error instanceof PostgresStoreError && error.code === 'schema_missing') return 0
      throw error
    }
  }

  #tellOfWaiting(waiting: number): void {
    const now = performance.now()
    if (now < this.#toldOfWaitingAt + WAITING_TOLD_EVERY_MS) return
    this.#toldOfWaitingAt = now
    this.#tell({ type: 'connections_exhausted', waiting, advice: POOL_ADVICE })
  }

  #tell(event: StoreEvent): void {
    for (const tell of this.#listeners) tell(event)
  }
}

const WAITING_TOLD_EVERY_MS = 10_000

const POOL_ADVICE =
  'Give the store a pool of its own, which no handler takes connections from; where it has one, raise its `max`, and look ' +
  'what the database is busy with.'
