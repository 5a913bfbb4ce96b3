import type { machine } from '../../src/core/index.js'
import type { Connection } from './connection.js'
import { recordIn, valuesOf } from './record-row.js'

type StoredRecord = machine.StoredRecord

/** The rows of the records, read and written in the open transaction. */
export class Records {
  readonly #connection: Connection
  readonly #clock: () => number

  constructor(connection: Connection, clock: () => number) {
    this.#connection = connection
    this.#clock = clock
  }

  /** An integer, as the table's columns require. */
  now(): number {
    return Math.floor(this.#clock())
  }

  /** @throws SqliteStoreError `record_unreadable`. */
  find(key: string, now: number): StoredRecord | null {
    return recordIn(this.#connection.row('read', key), now)
  }

  write(key: string, record: StoredRecord): void {
    this.#connection.change('write', key, ...valuesOf(record))
  }

  remove(key: string): void {
    this.#connection.change('remove', key)
  }

  /** Removes some expired rows, the oldest first. Returns their number. */
  sweep(now: number, most: number): number {
    return this.#connection.change('sweep', now, most)
  }
}
