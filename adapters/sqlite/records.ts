import type { machine } from '../../src/core/index.js'
import type { Connection } from './connection.js'
import { recordIn, valuesOf } from './record-row.js'

type StoredRecord = machine.StoredRecord

/** The rows of the records, as a transaction that is open reads and writes them. */
export class Records {
  readonly #connection: Connection
  readonly #clock: () => number

  constructor(connection: Connection, clock: () => number) {
    this.#connection = connection
    this.#clock = clock
  }

  /** An integer, as the table's columns are. */
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

  /** Removes some that have expired, the oldest first. How many there were. */
  sweep(now: number, most: number): number {
    return this.#connection.change('sweep', now, most)
  }
}
