import { prepared, type Row, type SqliteDatabase } from './client.js'
import { SqliteStoreError } from './errors.js'

/** How long SQLite itself waits for another connection, which holds up the whole process: what a short commit takes. */
const SHORT_WAIT_MS = 5

/** https://www.sqlite.org/pragma.html#pragma_synchronous: 2 is FULL, 3 EXTRA. */
const FULL = 2

/** The settings of a connection that the store depends on. The application can change them at any time. */
export class Settings {
  readonly #database: SqliteDatabase
  readonly #prepared = new Map<string, () => unknown>()
  #wasSet = false

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  /**
   * https://www.sqlite.org/wal.html: in WAL mode, FULL is what makes a commit survive the loss of power.
   *
   * @throws SqliteStoreError `database_unsuitable`.
   */
  beDurable(): void {
    if (this.#value('journal_mode') !== 'wal') {
      // Inside a transaction it would stay as it is, without an error.
      this.#database.exec('BEGIN; COMMIT')
      const mode = this.#value('journal_mode = WAL')
      if (mode !== 'wal') throw unsuitable(`its journal_mode stays ${mode} instead of WAL`)
    }
    // A driver may be built with a default that is less in WAL mode, and says FULL before: only what was set counts.
    if (this.#wasSet && this.#isFull()) return
    this.#database.exec('PRAGMA main.synchronous = FULL')
    if (!this.#isFull()) throw unsuitable('its setting synchronous = FULL is refused')
    this.#wasSet = true
  }

  /**
   * The same for a transaction that is open, in which nothing can be set any more.
   *
   * @throws SqliteStoreError `database_unsuitable`.
   */
  mustBeDurable(): void {
    const mode = this.#value('journal_mode')
    if (mode === 'wal' && this.#isFull()) return
    throw unsuitable(
      `on the connection of this transaction, journal_mode is ${mode} and synchronous ${this.#value('synchronous')} instead ` +
        `of wal and ${FULL}: set \`PRAGMA synchronous = FULL\` when you open it`,
    )
  }

  /** The application's own statements keep waiting as long as it has said. */
  withShortWait<Result>(work: () => Result): Result {
    const waitMs = Number(this.#value('busy_timeout'))
    if (waitMs <= SHORT_WAIT_MS) return work()
    this.#database.exec(`PRAGMA busy_timeout = ${SHORT_WAIT_MS}`)
    try {
      return work()
    } finally {
      this.#database.exec(`PRAGMA busy_timeout = ${waitMs}`)
    }
  }

  #isFull(): boolean {
    return Number(this.#value('synchronous')) >= FULL
  }

  #value(pragma: string): unknown {
    let get = this.#prepared.get(pragma)
    if (get === undefined) {
      const statement = prepared(this.#database, `PRAGMA main.${pragma}`)
      get = () => Object.values(statement.get() as Row)[0]
      this.#prepared.set(pragma, get)
    }
    return get()
  }
}

function unsuitable(because: string): SqliteStoreError {
  return new SqliteStoreError(
    'database_unsuitable',
    `The database cannot keep records durably: ${because}. The store needs a file on a local disk, with room for its -wal ` +
      'and -shm files beside it.',
  )
}
