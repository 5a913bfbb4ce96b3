import { statSync } from 'node:fs'
import type { Row } from '../sql/row.js'
import { prepareStatement, type SqliteDatabase } from './client.js'
import { ADVICE, SqliteStoreError } from './errors.js'

/**
 * How long SQLite itself waits for another connection, which blocks the whole process: the duration of a short commit.
 */
const SHORT_WAIT_MS = 5

/** https://www.sqlite.org/pragma.html#pragma_synchronous: 2 is FULL, 3 EXTRA. */
const FULL = 2

/** The connection settings that the store depends on. The application can change them at any time. */
export class ConnectionSettings {
  readonly #database: SqliteDatabase
  readonly #prepared = new Map<string, () => unknown>()
  #wasSet = false
  /** The application's busy_timeout, while the store's is set. */
  #applicationsWaitMs: number | undefined
  /** Which file was opened; `null`: it cannot be told. */
  #opened: string | null | undefined
  /** The same of its `-wal` file, which is there from the first write on. */
  #openedWal: string | null | undefined
  #path = ''

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  /**
   * https://www.sqlite.org/wal.html: in WAL mode, a commit survives power loss only with FULL.
   *
   * @throws SqliteStoreError `database_unsuitable`.
   */
  ensureDurable(): void {
    this.#assertFileInPlace()
    if (this.#readPragma('journal_mode') === 'wal') this.#assertWalInPlace()
    else {
      this.#openedWal = undefined
      // Fails inside a transaction, where journal_mode would silently stay unchanged.
      this.#database.exec('BEGIN; COMMIT')
      const mode = this.#readPragma('journal_mode = WAL')
      if (mode !== 'wal') throw unsuitableDatabaseError(`its journal_mode stays ${mode} instead of WAL`)
    }
    // Sets FULL even if it reads as FULL: a driver may be built with a lower default that only applies in WAL mode.
    if (this.#wasSet && this.#isFull()) return
    this.#database.exec('PRAGMA main.synchronous = FULL')
    if (!this.#isFull()) throw unsuitableDatabaseError('its setting synchronous = FULL is refused')
    this.#wasSet = true
  }

  /**
   * The same check for an open transaction, in which nothing can be set any more.
   *
   * @throws SqliteStoreError `database_unsuitable`.
   */
  assertDurable(): void {
    const mode = this.#readPragma('journal_mode')
    if (mode === 'wal' && this.#isFull()) return
    throw unsuitableDatabaseError(
      `on the connection of this transaction, journal_mode is ${mode} and synchronous ${this.#readPragma('synchronous')} instead ` +
        `of wal and ${FULL}: set \`PRAGMA synchronous = FULL\` when you open it`,
    )
  }

  /** Restores the application's busy_timeout afterwards, for its own statements. */
  runWithShortWait<Result>(work: () => Result): Result {
    const waitMs = this.#applicationsWaitMs ?? Number(this.#readPragma('busy_timeout'))
    if (waitMs <= SHORT_WAIT_MS) return work()
    this.#database.exec(`PRAGMA busy_timeout = ${SHORT_WAIT_MS}`)
    this.#applicationsWaitMs = waitMs
    try {
      return work()
    } finally {
      this.#restoreWait(waitMs)
    }
  }

  #restoreWait(waitMs: number): void {
    try {
      this.#database.exec(`PRAGMA busy_timeout = ${waitMs}`)
      this.#applicationsWaitMs = undefined
    } catch {} // A statement of the application is still being read: then with the next command.
  }

  /** What is written into a file without its name is lost with the last process that has opened it, and no other one sees it. */
  #assertFileInPlace(): void {
    if (this.#opened === undefined) {
      const databases = prepareStatement(this.#database, 'PRAGMA database_list').all() as readonly Row[]
      this.#path = String(databases.find(({ name }) => name === 'main')?.file)
      this.#opened = findFileIdentity(this.#path)
    }
    assertFileAt(this.#path, this.#opened, 'file was moved, replaced or removed')
  }

  /**
   * Another process that opens the file deletes it, if it believes that nobody else has: so it does once this process has closed a copy of
   * the file, for a backup. https://www.sqlite.org/howtocorrupt.html
   */
  #assertWalInPlace(): void {
    assertFileAt(this.#wal, this.#openedWal ?? null, '-wal file was removed or replaced')
  }

  /** Called behind each write. */
  onWritten(): void {
    if (this.#openedWal === undefined && this.#opened !== null) this.#openedWal = findFileIdentity(this.#wal)
  }

  get #wal(): string {
    return `${this.#path}-wal`
  }

  #isFull(): boolean {
    return Number(this.#readPragma('synchronous')) >= FULL
  }

  #readPragma(pragma: string): unknown {
    let get = this.#prepared.get(pragma)
    if (get === undefined) {
      const statement = prepareStatement(this.#database, `PRAGMA main.${pragma}`)
      get = () => Object.values(statement.get() as Row)[0]
      this.#prepared.set(pragma, get)
    }
    return get()
  }
}

/** `opened`: which file it was; `null`: it cannot be told. */
function assertFileAt(path: string, opened: string | null, whatHappened: string): void {
  if (opened === null || findFileIdentity(path) === opened) return
  throw unsuitableDatabaseError(`its ${whatHappened} while it was open. Open it anew: restart the process`)
}

function findFileIdentity(path: string): string | null {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev} ${ino}`
  } catch {
    return null
  }
}

function unsuitableDatabaseError(because: string): SqliteStoreError {
  const fault = `The database cannot keep records durably: ${because}.`
  return new SqliteStoreError('database_unsuitable', `${fault} ${ADVICE.database_unsuitable}`)
}
