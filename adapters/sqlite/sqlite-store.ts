import {
  type ActingContext,
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  completeByHandAtOnce,
  type GivenAnswer,
  type GivenByHand,
  type IdempotencyRecord,
  type ListedRecords,
  machine,
  type Ownership,
  type Resolution,
  type Store,
  stepAtOnce,
  transactAtOnce,
} from '../../src/core/index.js'
import type { SqliteDatabase } from './client.js'
import { Connection } from './connection.js'
import { completeByHand, InTransaction } from './in-transaction.js'
import { readOptions, type SqliteStoreOptions } from './options.js'
import { integer, recordIn } from './record-row.js'
import { Records } from './records.js'
import { FORMAT } from './table.js'
import { WaitingLine } from './waiting-line.js'

type StoredRecord = machine.StoredRecord

/** What no promise is: nothing to add to its type. */
type Synchronous<Value> = Value extends PromiseLike<unknown> ? never : unknown

/** How many expired rows a claim removes: more than it adds, and little beside its commit. */
const ROWS_A_CLAIM = 4
const ROWS_A_SWEEP = 200
const ROWS_A_LIST = 1_000

/**
 * Keeps records in a file of SQLite, for the processes of one machine: without a server, and durable, so that a command that
 * the store has confirmed survives a crash of the process and of the machine. Each command is the core's own machine in one
 * immediate transaction.
 *
 * The tables are created by the first command. A command that meets an open transaction on its connection fails, so an
 * application that keeps transactions open across an `await` gives the store a connection of its own.
 *
 * @example
 * import { DatabaseSync } from 'node:sqlite'
 *
 * const store = new SqliteStore({ database: new DatabaseSync('payments.db') })
 */
export class SqliteStore<Database extends SqliteDatabase = SqliteDatabase> implements Store {
  readonly #database: Database
  readonly #connection: Connection
  readonly #line: WaitingLine
  readonly #records: Records
  readonly #inTransaction: InTransaction
  readonly #prefix: string
  readonly #clock: () => number
  readonly #sweeps: boolean

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was changed. */
  constructor(options: SqliteStoreOptions<Database>) {
    const { database, prefix, busyTimeoutMs, sweeps, now } = readOptions(options)
    this.#database = database
    this.#prefix = prefix
    this.#clock = now
    this.#connection = new Connection(database, prefix)
    this.#line = new WaitingLine(busyTimeoutMs)
    this.#records = new Records(this.#connection, now)
    this.#inTransaction = new InTransaction(this.#connection, this.#records, this.#line)
    this.#sweeps = sweeps
  }

  /**
   * Creates the tables where they are not there, as the first command would: called when the process starts, it tells early
   * of a database that cannot be used. Safe from many processes at once.
   *
   * @throws SqliteStoreError; nothing was changed.
   */
  async migrate(): Promise<void> {
    await this.#line.run(() => this.#connection.setUp())
  }

  async begin(key: string, claim: Claim): Promise<BeginReply> {
    return this.#command(key, (record, now) => {
      const step = machine.begin(record, claim, now)
      // First, so that what it frees is there for the claim.
      if (this.#sweeps && step.reply.acquired) this.#records.sweep(now, ROWS_A_CLAIM)
      return step
    })
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    return this.#command(key, (record, now) => machine.renew(record, own, now))
  }

  async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    return this.#command(key, (record, now) => machine.complete(record, own, now))
  }

  async release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return this.#command(key, (record, now) => machine.release(record, own, now))
  }

  /**
   * Runs `work` in an immediate transaction of the store's connection, `tx`, which completes the record of a run as its last
   * statement: the writes of `work` are committed if, and only if, the record is completed. The handler answers inside of
   * `work`; the answer leaves behind the COMMIT.
   *
   * `work` is synchronous: while it waited, the statements of other requests would join the transaction.
   *
   * Resolves with what `work` returned, behind the COMMIT; where its answer is a failure, behind the rollback.
   *
   * @example
   * await store.transaction(req.idempotency, (tx) => {
   *   tx.prepare('INSERT INTO payouts (id) VALUES (?)').run(id)
   *   res.status(201).json({ id })
   * })
   *
   * @throws IdempotencyError for misuse: nothing was committed. What `work` throws, errors of the database, and
   * SqliteStoreError: everything was rolled back, the answer was discarded, and the run goes on, so the handler may open another
   * transaction.
   */
  async transaction<Value>(
    context: ActingContext | undefined,
    work: (tx: Database) => Value & Synchronous<Value>,
  ): Promise<Value> {
    return transactAtOnce<Value>(this, context, this.#inTransaction, () => work(this.#database))
  }

  /**
   * Commits writes of a run that goes on, as often as wanted: its outcome is unknown from then on, until it is completed.
   * `work` is synchronous. Resolves with what it returned, behind the COMMIT.
   *
   * @throws IdempotencyError for misuse: nothing was committed. SqliteStoreError `record_taken`, `record_absent`,
   * `record_ended`: this attempt does not own the record, and nothing was committed. What `work` throws: it was rolled back.
   */
  async step<Value>(
    context: ActingContext | undefined,
    work: (tx: Database) => Value & Synchronous<Value>,
  ): Promise<Value> {
    return stepAtOnce<Value>(this, context, this.#inTransaction, () => work(this.#database))
  }

  /**
   * Completes the record of a run by hand, as the last statement of a transaction that was opened elsewhere: on a connection of
   * the application's to the same file, in WAL mode with `synchronous = FULL`, or on the store's own. Synchronous, as all of such
   * a transaction must be. At its end the run sends what the record says: this answer where the transaction was committed,
   * whatever the handler answers, and 503 where it was not. In the function of a runner, `answer` is the result:
   * `completeIn<Payout>(tx, context, payout)`.
   *
   * @throws IdempotencyError for misuse; SqliteStoreError `nothing_written`, `database_unsuitable`, `record_taken`,
   * `record_absent`, `record_ended`: the transaction is to be rolled back.
   */
  completeIn<Answer = GivenAnswer>(
    tx: SqliteDatabase,
    context: ActingContext | undefined,
    answer: GivenByHand<Answer>,
  ): void {
    const connection = tx === this.#database ? this.#connection : new Connection(tx, this.#prefix)
    const records = new Records(connection, this.#clock)
    completeByHandAtOnce(this, context, answer, (key, completion) =>
      completeByHand(connection, records, key, completion),
    )
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    return this.#read((now) => machine.inspect(this.#records.find(key, now), now).reply)
  }

  async resolve(key: string, resolution: Resolution): Promise<CommandReply> {
    return this.#command(key, (record, now) => machine.resolve(record, resolution, now))
  }

  async list(from: string | null): Promise<ListedRecords> {
    return this.#read((now) => {
      const rows = this.#connection.rows('list', Number(from ?? '0'), ROWS_A_LIST)
      const records = rows
        .filter((row) => row.format === FORMAT && row.state !== 'completed')
        .flatMap((row) => {
          const record = recordIn(row, now)
          if (record === null || !isUnknown(record, now)) return []
          const shown = machine.inspect(record, now).reply as IdempotencyRecord
          return [{ key: String(row.key), record: shown, retentionRemainingMs: record.expiresAt - now }]
        })
      const last = rows.length < ROWS_A_LIST ? undefined : rows.at(-1)
      return { records, next: last === undefined ? null : `${integer(last, 'id')}` }
    })
  }

  /** Removes all rows that have expired, now, some at a time. Resolves with how many there were. */
  async sweep(): Promise<number> {
    for (let removed = 0; ; ) {
      const step = await this.#line.run(() =>
        this.#connection.write(() => this.#records.sweep(this.#records.now(), ROWS_A_SWEEP)),
      )
      removed += step
      if (step < ROWS_A_SWEEP) return removed
      // Between two steps others have their turn.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #command<Reply>(
    key: string,
    command: (record: StoredRecord | null, now: number) => machine.Step<Reply>,
  ): Promise<Reply> {
    return this.#line.run(() =>
      this.#connection.write(() => {
        const now = this.#records.now()
        const found = this.#records.find(key, now)
        const { record, reply } = command(found, now)
        if (record !== null && record !== found) this.#records.write(key, record)
        return reply
      }),
    )
  }

  #read<Reply>(work: (now: number) => Reply): Promise<Reply> {
    return this.#line.run(() => this.#connection.read(() => work(this.#records.now())))
  }
}

/** It died, stalled, or failed after it may have had an effect. */
function isUnknown(record: StoredRecord, now: number): boolean {
  if (record.state === 'in-flight') return now >= record.leaseUntil
  return record.state === 'failed' && record.uncertain
}
