import {
  type ActingContext,
  type AllowEmpty,
  type Answer,
  type AsResult,
  type BeginReply,
  type Claim,
  type CommandReply,
  completeByHandAtOnce,
  type Forgetting,
  type GivenAnswer,
  type GivenByHand,
  type IdempotencyRecord,
  keepProcessAlive,
  type ListedRecords,
  machine,
  type Ownership,
  type Resolution,
  type StepChange,
  type StepOptions,
  type Store,
  stepAtOnce,
  toListedRecord,
  toListedRecordIfUnknown,
  transactAtOnce,
  type Unclaimed,
} from '../../src/core/index.js'
import { collectListedRecords, type StoredRecord } from '../sql/record-columns.js'
import { requireIntegerColumn } from '../sql/row.js'
import type { SqliteDatabase } from './client.js'
import { CommandQueue } from './command-queue.js'
import { SqliteConnection } from './connection.js'
import { completeByHand, SqliteTransactionStatements } from './in-transaction.js'
import { readOptions, type SqliteStoreOptions } from './options.js'
import { parseRecordIfLive, SqliteRecords } from './records.js'

/** Turns a type that is a promise into `never`. */
type Synchronous<Value> = Value extends PromiseLike<unknown> ? never : unknown

/** How many expired rows a claim removes: more than it adds, and few compared with its commit. */
const ROWS_A_CLAIM = 4
const ROWS_A_SWEEP = 200
const ROWS_A_LIST = 1_000

/**
 * Keeps records in a SQLite file, for the processes of one machine: no server, and durable, so a command that the store
 * has confirmed survives a crash of the process and of the machine. Each command runs the core's machine in one
 * immediate transaction.
 *
 * The first command creates the tables. A command fails if a transaction is open on its connection, so an application
 * that keeps transactions open across an `await` must give the store its own connection.
 *
 * @example
 * import { DatabaseSync } from 'node:sqlite'
 *
 * const store = new SqliteStore({ database: new DatabaseSync('payments.db') })
 */
export class SqliteStore<Database extends SqliteDatabase = SqliteDatabase> implements Store {
  readonly #database: Database
  readonly #connection: SqliteConnection
  readonly #queue: CommandQueue
  readonly #records: SqliteRecords
  readonly #inTransaction: SqliteTransactionStatements
  /** The prefix. */
  readonly place: string
  /** For `effects: 'in-transaction'`. */
  readonly unclaimed: Unclaimed
  readonly #clock: () => number
  readonly #sweeps: boolean

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was changed. */
  constructor(options: SqliteStoreOptions<Database>) {
    const { database, prefix, busyTimeoutMs, sweeps, now } = readOptions(options)
    this.#database = database
    this.place = prefix
    this.#clock = now
    this.#connection = new SqliteConnection(database, prefix)
    this.#queue = new CommandQueue(busyTimeoutMs)
    this.#records = new SqliteRecords(this.#connection, now)
    this.#inTransaction = new SqliteTransactionStatements(
      this.#connection,
      this.#records,
      this.#queue,
      sweeps ? ROWS_A_CLAIM : 0,
    )
    this.#sweeps = sweeps
    this.unclaimed = this.#createUnclaimedCommands()
  }

  /**
   * Creates the tables if they do not exist, as the first command would. Call it when the process starts, to find an
   * unusable database early. Safe from many processes at once.
   *
   * @throws SqliteStoreError; nothing was changed.
   */
  async migrate(): Promise<void> {
    await keepProcessAlive(this.#queue.run(() => this.#connection.createTables()))
  }

  async begin(key: string, claim: Claim): Promise<BeginReply> {
    const claimed = (record: StoredRecord | null, now: number) => {
      const step = machine.begin(record, claim, now)
      // First, so that the claim can use the freed space.
      if (this.#sweeps && step.reply.acquired) this.#records.sweep(now, ROWS_A_CLAIM)
      return step
    }
    return this.#runCommand(key, claimed, true)
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    return this.#runCommand(key, (record, now) => machine.renew(record, own, now))
  }

  async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    return this.#runCommand(key, (record, now) => machine.complete(record, own, now))
  }

  async release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return this.#runCommand(key, (record, now) => machine.release(record, own, now), true)
  }

  /**
   * Runs `work` in an immediate transaction of the store's connection, `tx`, whose last statement completes the run's
   * record: the writes of `work` are committed if, and only if, the record is completed. The handler must send its
   * response inside `work`; it is held until after the COMMIT.
   *
   * `work` is synchronous: if it waited, the statements of other requests would join the transaction.
   *
   * Resolves with the result of `work`, after the COMMIT; if the answer is a failure, after the rollback.
   *
   * @example
   * await store.transaction(req.idempotency, (tx) => {
   *   tx.prepare('INSERT INTO payouts (id) VALUES (?)').run(id)
   *   res.status(201).json({ id })
   * })
   *
   * @throws IdempotencyError for misuse, and SqliteStoreError `nothing_written`: nothing was committed. What `work` throws,
   * errors of the database, and SqliteStoreError: everything was rolled back, the answer was discarded, and the run continues, so the handler may
   * open another transaction.
   */
  async transaction<Value>(
    context: ActingContext | undefined,
    work: (tx: Database) => Value & Synchronous<Value>,
    options?: AllowEmpty,
  ): Promise<Value> {
    return transactAtOnce<Value>(this, context, this.#inTransaction, () => work(this.#database), options?.allowEmpty)
  }

  /**
   * A step of a run whose result commits with its writes: it runs exactly once. If an attempt has recorded the label,
   * resolves with its result, and does not call `work`, which is synchronous. From then on the outcome counts as unknown,
   * until the run is completed. Resolves after the COMMIT, with the result of `work` as JSON, or as `result: { encode,
   * decode }` of `options` makes it.
   *
   * @throws IdempotencyError for misuse: nothing was committed. SqliteStoreError `record_taken`, `record_absent`,
   * `record_ended`: this attempt does not own the record, and nothing was committed. What `work` throws: it was rolled
   * back.
   */
  step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: Database) => AsResult<Value> & Synchronous<Value>,
  ): Promise<Value>
  step<Value>(
    context: ActingContext | undefined,
    label: string,
    work: (tx: Database) => Value & Synchronous<Value>,
    options: StepOptions<NoInfer<Value>>,
  ): Promise<Value>
  /** The store's own command: see `Store`. */
  step(key: string, own: Ownership & StepChange & { readonly leaseMs: number }): Promise<CommandReply>
  async step(first: unknown, second: unknown, work?: unknown, options?: unknown): Promise<unknown> {
    if (typeof first === 'string') {
      const own = second as Parameters<typeof machine.step>[1]
      return this.#runCommand(first, (record, now) => machine.step(record, own, now))
    }
    const given = work as (tx: Database) => unknown
    return stepAtOnce(this, first, second as string, this.#inTransaction, () => given(this.#database), options)
  }

  /**
   * Completes the record of a run by hand, as the last statement of a transaction that your code opened itself: on the
   * application's own connection to the same file, in WAL mode with `synchronous = FULL`, or on the store's.
   * Synchronous, as the whole transaction must be. It cannot see whether the writes of the connection are of this
   * transaction. When the run ends, it sends what the record says: this answer if the
   * transaction was committed, whatever response the handler wrote, and 503 if it was not.
   *
   * In a runner's function, `answer` is the result: `completeIn<Payout>(tx, context, payout)`.
   *
   * @throws IdempotencyError for misuse; SqliteStoreError `nothing_written`, `database_unsuitable`, `record_taken`,
   * `record_absent`, `record_ended`: roll the transaction back.
   */
  completeIn<Answer = GivenAnswer>(
    tx: SqliteDatabase,
    context: ActingContext | undefined,
    answer: GivenByHand<Answer>,
  ): void {
    const connection = tx === this.#database ? this.#connection : new SqliteConnection(tx, this.place)
    const records = new SqliteRecords(connection, this.#clock)
    completeByHandAtOnce(this, context, answer, (key, completion) =>
      completeByHand(connection, records, key, completion),
    )
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    return this.#read((now) => machine.inspect(this.#records.find(key, now), now).reply)
  }

  async resolve(key: string, resolution: Resolution): Promise<CommandReply> {
    return this.#runCommand(key, (record, now) => machine.resolve(record, resolution, now))
  }

  async forget(key: string, forgetting: Forgetting): Promise<CommandReply> {
    return this.#runCommand(key, (record, now) => machine.forget(record, forgetting, now))
  }

  /** By the index of the keys. A semicolon follows a colon. */
  async listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return this.#read((now) => {
      const rows = this.#connection.queryRows('listScope', from ?? `${scope}:`, `${scope};`, ROWS_A_LIST)
      const found = collectListedRecords(rows, (row) => toListedRecord(parseRecordIfLive(row, now), now))
      return { ...found, next: rows.length < ROWS_A_LIST ? null : String(rows.at(-1)?.name) }
    })
  }

  async list(from: string | null): Promise<ListedRecords> {
    return this.#read((now) => {
      const rows = this.#connection.queryRows('list', Number(from ?? '0'), ROWS_A_LIST)
      const open = rows.filter(({ state }) => state !== 'completed')
      const found = collectListedRecords(open, (row) => toListedRecordIfUnknown(parseRecordIfLive(row, now), now))
      const last = rows.length < ROWS_A_LIST ? undefined : rows.at(-1)
      return { ...found, next: last === undefined ? null : `${requireIntegerColumn(last, 'id')}` }
    })
  }

  /** Removes all expired rows now, some at a time. Resolves with their number. */
  async sweep(): Promise<number> {
    for (let removed = 0; ; ) {
      const step = await keepProcessAlive(
        this.#queue.run(() =>
          this.#connection.write(() => this.#records.sweep(this.#records.readClockMs(), ROWS_A_SWEEP)),
        ),
      )
      removed += step
      if (step < ROWS_A_SWEEP) return removed
      // Lets other work run between two steps.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** One writer at a time: in a transaction of its own, each sees what the last one has committed. */
  #createUnclaimedCommands(): Unclaimed {
    return {
      look: async (key, looking) => this.#read((now) => machine.look(this.#records.find(key, now), looking, now), true),
      fence: async (key, { token }) =>
        this.#runCommand(key, (record, now) => {
          const reply = { isTaken: false, record: machine.inspect(record, now).reply, isOwn: record?.token === token }
          return { record, reply }
        }),
      withhold: async (key, own) => this.#runCommand(key, (record, now) => machine.withhold(record, own, now)),
    }
  }

  #runCommand<Reply>(
    key: string,
    command: (record: StoredRecord | null, now: number) => machine.Change<Reply>,
    isUrgent?: boolean,
  ): Promise<Reply> {
    const write = () => {
      const now = this.#records.readClockMs()
      const found = this.#records.find(key, now)
      const { record, reply } = command(found, now)
      if (record !== null && record !== found) this.#records.write(key, record)
      else if (record === null && found !== null) this.#records.remove(key)
      return reply
    }
    return this.#queue.run(() => this.#connection.write(write), isUrgent)
  }

  #read<Reply>(work: (now: number) => Reply, isUrgent?: boolean): Promise<Reply> {
    return this.#queue.run(() => this.#connection.read(() => work(this.#records.readClockMs())), isUrgent)
  }
}
