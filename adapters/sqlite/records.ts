import {
  buildUnreadableMessage,
  FORMAT,
  parseSnapshot,
  RECORD_COLUMNS,
  type StoredRecord,
  toRecordColumns,
} from '../sql/record-columns.js'
import type { Row } from '../sql/row.js'
import type { SqliteConnection } from './connection.js'
import { SqliteStoreError } from './errors.js'

/** The rows of the records, read and written in the open transaction. */
export class SqliteRecords {
  readonly #connection: SqliteConnection
  readonly #clock: () => number

  constructor(connection: SqliteConnection, clock: () => number) {
    this.#connection = connection
    this.#clock = clock
  }

  /** An integer, as the table's columns require. */
  readClockMs(): number {
    return Math.floor(this.#clock())
  }

  /** @throws SqliteStoreError `record_unreadable`. */
  find(key: string, now: number): StoredRecord | null {
    return parseRecordIfLive(this.#connection.queryRow('read', key), now)
  }

  write(key: string, record: StoredRecord): void {
    const columns = toRecordColumns(record)
    this.#connection.change('write', key, FORMAT, ...RECORD_COLUMNS.map((name) => columns[name]))
  }

  remove(key: string): void {
    this.#connection.change('remove', key)
  }

  /** Removes some expired rows, the oldest first. Returns their number. */
  sweep(now: number, most: number): number {
    return this.#connection.change('sweep', now, most)
  }
}

/**
 * The record in a row; `null` if there is no row or it has expired.
 *
 * @throws SqliteStoreError `record_unreadable`.
 */
export function parseRecordIfLive(row: Row | undefined, now: number): StoredRecord | null {
  return row === undefined ? null : parseSnapshot({ ...row, now, revision: 0 }, unreadableError).record
}

function unreadableError(because: string): SqliteStoreError {
  return new SqliteStoreError('record_unreadable', buildUnreadableMessage(because))
}
