import { findClientMessage, redactErrorValues } from '../sql/errors.js'
import type { Row } from '../sql/row.js'
import {
  convertBlobs,
  findResultCode,
  prepareStatement,
  type SqliteDatabase,
  type SqliteStatement,
  type SqliteValue,
} from './client.js'
import { ADVICE, SqliteStoreError, storeError } from './errors.js'
import { ConnectionSettings } from './settings.js'
import { createTableStatements, SCHEMA_VERSION, schemaSql } from './table.js'

const MARK = 'once_per_key_mark'

/** How soon a rollback that was refused is tried again. */
const ROLLBACK_MS = 10

interface Changes {
  readonly changes: number | bigint
}

type StatementName = keyof ReturnType<typeof createTableStatements>

/**
 * The application's connection as the store uses it: only for the duration of one command, and never inside the
 * application's transactions. Everything is synchronous, so nothing else runs on the connection meanwhile.
 */
export class SqliteConnection {
  readonly #database: SqliteDatabase
  readonly #settings: ConnectionSettings
  readonly #prefix: string
  readonly #texts: Readonly<Record<StatementName, string>>
  readonly #prepared = new Map<string, SqliteStatement>()
  /** Whether the tables exist in the known version. */
  #isReady = false
  /** A transaction of the store could not be rolled back, since a statement of the application was still being read. */
  #isLeftOpen = false
  /** The connection's count of changed rows after the store's last command. */
  #ownChanges = 0
  /** The same count when the run's transaction began. */
  #changesBefore = 0

  constructor(database: SqliteDatabase, prefix: string) {
    this.#database = database
    this.#settings = new ConnectionSettings(database)
    this.#prefix = prefix
    this.#texts = createTableStatements(prefix)
  }

  /** Creates the tables if they do not exist. Safe from many processes at once: SQLite serializes them. */
  createTables(): void {
    this.#runCommand(() => this.#ensureReady())
  }

  /** Runs `work` in its own transaction, which excludes other writers. */
  write<Result>(work: () => Result): Result {
    return this.#runCommand(() => {
      this.#ensureReady()
      const result = this.#runTransaction('IMMEDIATE', work)
      this.#settings.onWritten()
      this.#ownChanges = this.#countChanges()
      return result
    })
  }

  /** Reads in its own transaction, which does not wait for writers. The file is not changed, unless it has no tables yet. */
  read<Result>(work: () => Result): Result {
    return this.#runCommand(() => {
      this.#isReady ||= this.#runTransaction('DEFERRED', () => this.#hasTables())
      if (!this.#isReady) this.#ensureReady()
      return this.#runTransaction('DEFERRED', work)
    })
  }

  /** From now on `hasWritten` counts. */
  startCountingWrites(): void {
    this.#changesBefore = this.#countChanges()
  }

  /** Whether a row was changed over the connection since `startCountingWrites`. */
  hasWritten(): boolean {
    return this.#countChanges() !== this.#changesBefore
  }

  /** Marks the open transaction with a savepoint: a commit or rollback removes it. */
  mark(): void {
    this.#database.exec(`SAVEPOINT ${MARK}`)
  }

  /** @throws SqliteStoreError `transaction_unmarked`. */
  assertMarked(): void {
    try {
      this.#database.exec(`RELEASE ${MARK}`)
    } catch (error) {
      if (findResultCode(error) !== 'SQLITE_ERROR') throw storeError(error)
      throw new SqliteStoreError('transaction_unmarked', ADVICE.transaction_unmarked, { cause: error })
    }
    this.mark()
  }

  /**
   * Whether an application's transaction is open on the connection that can have written something and whose COMMIT will
   * be durable. The only sign of writes is SQLite's count of changed rows, which begins when the connection is opened,
   * not with the transaction: earlier writes hide that this transaction has none.
   *
   * @throws SqliteStoreError `nothing_written`, `database_unsuitable`.
   */
  assertWrittenAndDurable(): void {
    if (!this.#isInTransaction() || this.#countChanges() === this.#ownChanges) throw nothingWrittenError()
    this.#settings.assertDurable()
  }

  queryRow(name: StatementName, ...values: SqliteValue[]): Row | undefined {
    return this.#runStatement(name, (statement) => convertBlobs(statement.get(...values) as Row | undefined))
  }

  queryRows(name: StatementName, ...values: SqliteValue[]): readonly Row[] {
    return this.#runStatement(name, (statement) => (statement.all(...values) as readonly Row[]).map(convertBlobs))
  }

  /** Returns how many rows the statement changed. */
  change(name: StatementName, ...values: SqliteValue[]): number {
    return this.#runStatement(name, (statement) => Number((statement.run(...values) as Changes).changes))
  }

  #runStatement<Result>(name: StatementName, send: (statement: SqliteStatement) => Result): Result {
    try {
      return send(this.#getStatement(this.#texts[name]))
    } catch (error) {
      throw error instanceof SqliteStoreError ? error : redactErrorValues(error)
    }
  }

  #runCommand<Result>(work: () => Result): Result {
    this.#isLeftOpen &&= !this.#tryRollback()
    return this.#settings.runWithShortWait(work)
  }

  #runTransaction<Result>(kind: 'IMMEDIATE' | 'DEFERRED', work: () => Result): Result {
    // Fails inside an application's transaction.
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
  #countChanges(): number {
    return Number((this.#getStatement('SELECT total_changes() AS changes').get() as Changes).changes)
  }

  #rollBack(): void {
    this.#isLeftOpen = !this.#tryRollback()
    if (this.#isLeftOpen) this.#rollBackSoon()
  }

  #tryRollback(): boolean {
    try {
      this.#database.exec('ROLLBACK')
      return true
    } catch (error) {
      return storeError(error).code !== 'connection_in_use' // Some errors have already rolled it back.
    }
  }

  /** Or what the application writes next would join it, and be lost. */
  #rollBackSoon(): void {
    setTimeout(() => {
      if (!this.#isLeftOpen) return
      this.#isLeftOpen = !this.#tryRollback()
      if (this.#isLeftOpen) this.#rollBackSoon()
    }, ROLLBACK_MS).unref()
  }

  /** Checked before each command that writes, because the application can change the settings at any time. */
  #ensureReady(): void {
    this.#settings.ensureDurable()
    if (this.#isReady) return
    this.#runTransaction('IMMEDIATE', () => {
      if (!this.#hasTables()) this.#create()
    })
    this.#isReady = true
  }

  /** @throws SqliteStoreError `schema_unknown`. */
  #hasTables(): boolean {
    const version = this.#findSchemaVersion()
    if (version !== null && version !== SCHEMA_VERSION)
      throw unknownSchemaError(this.#prefix, `they have version ${version}`)
    return version !== null
  }

  /** `null` if there are no tables. */
  #findSchemaVersion(): number | null {
    const names = this.#database.prepare("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?")
    if (names.get(`${this.#prefix}schema`) === undefined) return null
    const version = this.#readVersionRow()
    if (version === null) throw unknownSchemaError(this.#prefix, 'they have no version')
    return version
  }

  #readVersionRow(): number | null {
    try {
      const version = this.queryRow('version')?.version
      return typeof version === 'number' ? version : null
    } catch (error) {
      if (findResultCode(error) === 'SQLITE_ERROR') return null // No such column.
      throw error
    }
  }

  #create(): void {
    try {
      this.#database.exec(schemaSql(this.#prefix))
    } catch (error) {
      if (!/already exists/.test(findClientMessage(error))) throw error
      throw unknownSchemaError(this.#prefix, 'they were created by something else')
    }
  }

  #getStatement(sql: string): SqliteStatement {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const statement = prepareStatement(this.#database, sql)
    this.#prepared.set(sql, statement)
    return statement
  }
}

function nothingWrittenError(): SqliteStoreError {
  return new SqliteStoreError(
    'nothing_written',
    'No transaction is open on this connection, or nothing was written over it: complete the record as the last statement of the ' +
      'transaction with the effects, on its connection.',
  )
}

function unknownSchemaError(prefix: string, because: string): SqliteStoreError {
  const tables = `The tables ${prefix}records and ${prefix}schema cannot be used, and were left unchanged: ${because}.`
  return new SqliteStoreError('schema_unknown', `${tables} ${ADVICE.schema_unknown}`)
}
