import {
  prepared,
  type Row,
  resultCodeOf,
  type SqliteDatabase,
  type SqliteStatement,
  type SqliteValue,
  wordsOf,
} from './client.js'
import { SqliteStoreError, storeError } from './errors.js'
import { Settings } from './settings.js'
import { SCHEMA_VERSION, schemaSql, statementsOn } from './table.js'

const MARK = 'once_per_key_mark'

type StatementName = keyof ReturnType<typeof statementsOn>

/**
 * The application's connection, as the store uses it: for as long as one command takes, and never inside a transaction of
 * the application's. All of it is synchronous, so nothing else runs on the connection in between.
 */
export class Connection {
  readonly #database: SqliteDatabase
  readonly #settings: Settings
  readonly #prefix: string
  readonly #texts: Readonly<Record<StatementName, string>>
  readonly #prepared = new Map<string, SqliteStatement>()
  /** Whether the tables were found, or created, of the version that is known. */
  #isReady = false
  /** How many rows had been changed over the connection behind the store's last command. */
  #ownChanges = 0

  constructor(database: SqliteDatabase, prefix: string) {
    this.#database = database
    this.#settings = new Settings(database)
    this.#prefix = prefix
    this.#texts = statementsOn(prefix)
  }

  /** Creates the tables where they are not there. Safe from many processes at once: they are one behind the other. */
  setUp(): void {
    this.#settings.withShortWait(() => this.#ready())
  }

  /** Does `work` in a transaction of its own that nobody writes beside. */
  write<Result>(work: () => Result): Result {
    return this.#settings.withShortWait(() => {
      this.#ready()
      const result = this.#transaction('IMMEDIATE', work)
      this.#ownChanges = this.#changes()
      return result
    })
  }

  /** Reads in a transaction of its own, which waits for nobody who writes. */
  read<Result>(work: () => Result): Result {
    return this.#settings.withShortWait(() => {
      this.#ready()
      return this.#transaction('DEFERRED', work)
    })
  }

  /** Marks the transaction that is open: the mark is gone with it, be it committed or undone. */
  mark(): void {
    this.#database.exec(`SAVEPOINT ${MARK}`)
  }

  /** @throws SqliteStoreError `transaction_unmarked`. */
  checkMark(): void {
    try {
      this.#database.exec(`RELEASE ${MARK}`)
    } catch (error) {
      throw unmarked(error)
    }
    this.mark()
  }

  /**
   * Whether a transaction of the application's is open on the connection, in which it has written, and whose COMMIT will be
   * durable. Of what was written, SQLite tells only how many rows the connection has changed.
   *
   * @throws SqliteStoreError `nothing_written`, `database_unsuitable`.
   */
  checkApplicationsTransaction(): void {
    if (!this.#isInTransaction() || this.#changes() === this.#ownChanges) throw nothingWritten()
    this.#settings.mustBeDurable()
  }

  row(name: StatementName, ...values: SqliteValue[]): Row | undefined {
    return this.#statement(this.#texts[name]).get(...values) as Row | undefined
  }

  rows(name: StatementName, ...values: SqliteValue[]): readonly Row[] {
    return this.#statement(this.#texts[name]).all(...values) as readonly Row[]
  }

  /** How many rows it changed. */
  change(name: StatementName, ...values: SqliteValue[]): number {
    const { changes } = this.#statement(this.#texts[name]).run(...values) as { readonly changes: number | bigint }
    return Number(changes)
  }

  #transaction<Result>(kind: 'IMMEDIATE' | 'DEFERRED', work: () => Result): Result {
    // Fails inside a transaction of the application's.
    this.#database.exec(`BEGIN ${kind}`)
    try {
      const result = work()
      this.#database.exec('COMMIT')
      return result
    } catch (error) {
      this.#rollBack()
      throw error
    }
  }

  #isInTransaction(): boolean {
    try {
      this.#database.exec('BEGIN')
    } catch (error) {
      if (storeError(error).code === 'connection_in_use') return true
      throw error
    }
    this.#rollBack()
    return false
  }

  /** How many rows were changed over the connection since it was opened. */
  #changes(): number {
    return (this.#statement('SELECT total_changes() AS changes').get() as { readonly changes: number }).changes
  }

  #rollBack(): void {
    try {
      this.#database.exec('ROLLBACK')
    } catch {} // Some errors have undone the transaction already, and the first error is the one that tells.
  }

  /** The settings can be changed by the application at any time, so they are looked at before each command. */
  #ready(): void {
    this.#settings.beDurable()
    if (this.#isReady) return
    this.#transaction('IMMEDIATE', () => {
      const version = this.#version()
      if (version === null) this.#create()
      else if (version !== SCHEMA_VERSION) throw unknownSchema(this.#prefix, `they are of version ${version}`)
    })
    this.#isReady = true
  }

  /** `null`: there are no tables. */
  #version(): number | null {
    const names = this.#database.prepare("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?")
    if (names.get(`${this.#prefix}schema`) === undefined) return null
    const version = this.#saidVersion()
    if (version === null) throw unknownSchema(this.#prefix, 'they do not say of which version they are')
    return version
  }

  #saidVersion(): number | null {
    try {
      const version = this.row('version')?.version
      return typeof version === 'number' ? version : null
    } catch (error) {
      if (resultCodeOf(error) === 'SQLITE_ERROR') return null // There is no such column.
      throw error
    }
  }

  #create(): void {
    try {
      this.#database.exec(schemaSql(this.#prefix))
    } catch (error) {
      if (!/already exists/.test(wordsOf(error))) throw error
      throw unknownSchema(this.#prefix, 'they were created by something else')
    }
  }

  #statement(sql: string): SqliteStatement {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const statement = prepared(this.#database, sql)
    this.#prepared.set(sql, statement)
    return statement
  }
}

function unmarked(cause: unknown): SqliteStoreError {
  return new SqliteStoreError(
    'transaction_unmarked',
    'This is not the transaction any more that was opened for this run: a statement of the work has committed it, or rolled it ' +
      'back, or failed in a way that undid it. Leave BEGIN, COMMIT and ROLLBACK to the store, and let such errors pass.',
    { cause },
  )
}

function nothingWritten(): SqliteStoreError {
  return new SqliteStoreError(
    'nothing_written',
    'No transaction is open on this connection, or nothing was written in it: complete in the transaction of the effects, on its ' +
      'own connection, as its last statement.',
  )
}

function unknownSchema(prefix: string, because: string): SqliteStoreError {
  return new SqliteStoreError(
    'schema_unknown',
    `The tables ${prefix}records and ${prefix}schema cannot be used, and were left as they are: ${because}. Use the version ` +
      'of the library that created them, or another `prefix`.',
  )
}
