import {
  type ActingContext,
  type AsResult,
  type BeginReply,
  type Claim,
  type CommandReply,
  type Completion,
  completeByHand,
  type GivenAnswer,
  type GivenByHand,
  type JsonOf,
  type ListedRecords,
  type Ownership,
  readAllowEmpty,
  type StepChange,
  type Store,
  type StoreError,
  type StoreEvent,
  safeListener,
  step,
  type Transactions,
  toListedRecord,
  toListedRecordIfUnknown,
  transact,
  transactionsMissingError,
  type Unclaimed,
  type WithAllowEmpty,
  type WithResult,
} from '../../src/core/index.js'
import type { PoolTurns } from './clients.js'
import type { SqlRecordTable } from './record-table.js'
import { RowStore } from './row-store.js'
import { type SweepIntervals, SweepTimer } from './sweep-timer.js'

/** Where a store's records are, and how its application opens transactions. */
interface SqlStoreParts {
  /** Of the class, for messages. */
  readonly name: string
  /** The schema, or the prefix. */
  readonly place: string
  readonly table: SqlRecordTable
  readonly turns: PoolTurns
  readonly transactions: SqlTransactions | undefined
  readonly sweeps: boolean
  /** Whether the application has closed the client. */
  isClientClosed(): boolean
}

/** The transactions of the application, with the statements of runs inside them. */
export interface SqlTransactions extends Transactions<unknown, unknown> {
  /** Completes the record of a run in a transaction that the application has opened. */
  completeByHand(tx: unknown, key: string, completion: Completion, isAwaited: () => boolean): Promise<void>
}

/** A store in a database with a server: what `PostgresStore` and `MySqlStore` have in common. */
export abstract class SqlStore<Tx, Options> extends RowStore implements Store {
  /** The schema, or the prefix of the tables. */
  readonly place: string
  /** For `effects: 'in-transaction'`, which needs the option `transactions`. */
  readonly unclaimed: Unclaimed | undefined
  readonly #name: string
  readonly #turns: PoolTurns
  /** `undefined`: the application did not give `transactions`. */
  readonly #transactions: SqlTransactions | undefined
  readonly #timer: SweepTimer | undefined
  readonly #listeners: ((event: StoreEvent) => void)[] = []

  /** @internal */
  constructor({ name, place, table, turns, transactions, sweeps, isClientClosed }: SqlStoreParts) {
    super(table)
    turns.onEvent = (event) => this.emit(event)
    this.#name = name
    this.place = place
    this.#turns = turns
    this.#transactions = transactions
    const unclaimed = this.createUnclaimedCommands()
    this.unclaimed = transactions && {
      ...unclaimed,
      look: async (key, looking) => this.#startSweepsBehind(unclaimed.look(key, looking)),
    }
    const sweep = {
      step: (pace: SweepIntervals) => table.sweepStretchIfOurTurn(pace),
      isClientClosed,
      onFailure: (error: unknown) => this.emit({ type: 'sweep_failed', error: error as StoreError }),
    }
    this.#timer = sweeps ? new SweepTimer(sweep) : undefined
  }

  override async begin(key: string, claim: Claim): Promise<BeginReply> {
    return this.#startSweepsBehind(super.begin(key, claim))
  }

  /**
   * Runs `work` in a transaction whose last statement completes the run's record: the writes of `work` are committed
   * if, and only if, the record is completed. The handler must send its response inside `work`; it is held until after
   * the COMMIT. On MySQL no statement in `work` may commit: DDL does.
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
   * @throws IdempotencyError for misuse, and the store's error `nothing_written`: nothing was committed. What `work` throws,
   * and errors of the database: everything was rolled back, the answer was discarded, and the run continues, so the handler may open another
   * transaction. If a COMMIT could not be resolved before `maxRunMs` ended, its error: the client was told to retry.
   */
  async transaction<Value>(
    context: ActingContext | undefined,
    work: (tx: Tx) => Value | Promise<Value>,
    options?: WithAllowEmpty<Options>,
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
   * @throws IdempotencyError for misuse: nothing was committed. The store's errors `record_taken`, `record_absent`,
   * `record_ended`: this attempt does not own the record, and nothing was committed. What `work` throws: it was rolled
   * back.
   */
  override step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: Tx) => (Value & JsonOf<Value>) | Promise<Value & JsonOf<Value>>,
    options?: Options,
  ): Promise<Value>
  /** The same for type parameters. */
  override step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: Tx) => AsResult<Value> | Promise<AsResult<Value>>,
    options?: Options,
  ): Promise<Value>
  override step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: Tx) => Value | Promise<Value>,
    options: WithResult<Options, NoInfer<Value>>,
  ): Promise<Value>
  /** The store's own command: see `Store`. */
  override step(key: string, own: Ownership & StepChange & { readonly leaseMs: number }): Promise<CommandReply>
  override async step(first: unknown, second: unknown, work?: unknown, options?: unknown): Promise<unknown> {
    if (typeof first === 'string') return super.step(first, second as Parameters<RowStore['step']>[1])
    return step(this, first, second as string, this.#requireTransactions(), work as (tx: unknown) => unknown, options)
  }

  /**
   * Completes the record of a run by hand, as the last statement of a transaction that your code opened itself. When
   * the run ends, it sends what the record says: this answer if the transaction was committed, whatever response the
   * handler wrote, and 503 if it was not.
   *
   * In a runner's function, `answer` is the result: `completeIn<Payout>(tx, context, payout)`.
   *
   * @throws IdempotencyError for misuse; the store's errors `nothing_written`, `record_taken`, `record_absent`,
   * `record_ended`: roll the transaction back.
   */
  async completeIn<Answer = GivenAnswer>(
    tx: Tx,
    context: ActingContext | undefined,
    answer: GivenByHand<Answer>,
  ): Promise<void> {
    const transactions = this.#requireTransactions()
    await completeByHand(this, context, answer, (...sent) => transactions.completeByHand(tx, ...sent))
  }

  async listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return this.table.list(from, `${scope}:`, toListedRecord)
  }

  async list(from: string | null): Promise<ListedRecords> {
    return this.table.list(from, null, toListedRecordIfUnknown)
  }

  /** Removes all expired rows now. Resolves with their number. */
  async sweep(): Promise<number> {
    return this.table.sweepAll()
  }

  observe(listener: (event: StoreEvent) => void, storeTimeoutMs?: number): void {
    this.#turns.limitWait(storeTimeoutMs)
    this.#listeners.push(safeListener(listener))
  }

  /** @internal */
  protected emit(event: StoreEvent): void {
    for (const emit of this.#listeners) emit(event)
  }

  /** Behind the first command that succeeded: before it the tables may not exist. */
  async #startSweepsBehind<Reply>(command: Reply | Promise<Reply>): Promise<Reply> {
    const reply = await command
    this.#timer?.start()
    return reply
  }

  #requireTransactions(): SqlTransactions {
    if (this.#transactions === undefined) throw transactionsMissingError(`the ${this.#name}`)
    return this.#transactions
  }
}
