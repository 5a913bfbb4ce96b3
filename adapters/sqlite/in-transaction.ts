import {
  type Completion,
  type Entry,
  type Finish,
  machine,
  type RecordedResult,
  type StepChange,
  type SynchronousTransactions,
} from '../../src/core/index.js'
import { findClientMessage } from '../sql/errors.js'
import { requireOwned } from '../sql/record-columns.js'
import { findRecordedResult } from '../sql/steps-column.js'
import type { CommandQueue } from './command-queue.js'
import type { SqliteConnection } from './connection.js'
import { ADVICE, SqliteStoreError, storeError } from './errors.js'
import type { SqliteRecords } from './records.js'

/**
 * The transactions in which a run's effects and its record commit together, on the store's own connection. Each step
 * throws if the transaction must not commit, which rolls it back.
 */
export class SqliteTransactionStatements implements SynchronousTransactions {
  readonly #connection: SqliteConnection
  readonly #records: SqliteRecords
  readonly #queue: CommandQueue

  /** How many expired rows a new record removes. */
  readonly #sweeps: number

  constructor(connection: SqliteConnection, records: SqliteRecords, queue: CommandQueue, sweeps: number) {
    this.#connection = connection
    this.#records = records
    this.#queue = queue
    this.#sweeps = sweeps
  }

  async transaction(work: () => void): Promise<void> {
    let hasBegun = false
    const failed = await this.#queue.run(() => {
      try {
        this.#connection.write(() => {
          hasBegun = true
          this.#connection.mark()
          this.#connection.startCountingWrites()
          work()
          this.#connection.assertMarked()
        })
        return null
      } catch (error) {
        if (!hasBegun) throw error
        // Not thrown here: the queue would retry it as busy. The work must never run twice; its error reaches the
        // handler unchanged.
        return { error }
      }
    })
    if (failed !== null) throw failed.error
  }

  step(key: string, token: string, label: string): RecordedResult {
    const now = this.#records.readClockMs()
    const found = requireOwned(this.#records.find(key, now), token, SqliteStoreError)
    this.#records.write(key, { ...found, uncertain: true })
    return findRecordedResult(found.steps, label)
  }

  stepDone(key: string, token: string, change: StepChange): void {
    this.#connection.assertMarked()
    const found = requireOwned(this.#records.find(key, this.#records.readClockMs()), token, SqliteStoreError)
    const steps = machine.applyStep(found.steps, change)
    this.#records.write(key, steps === undefined ? found : { ...found, steps })
  }

  complete(key: string, completion: Completion, allowEmpty: boolean): void {
    this.#assertMayComplete(allowEmpty)
    completeRecord(this.#records, key, completion)
  }

  enter(key: string, entry: Entry): boolean {
    const now = this.#records.readClockMs()
    return machine.enter(this.#records.find(key, now), entry, now) === 'entered'
  }

  /** Nobody else has written since `enter`: the transaction excludes other writers. */
  finish(key: string, { token, fingerprint, attempt, retentionMs, answer }: Finish, allowEmpty: boolean): void {
    this.#assertMayComplete(allowEmpty)
    const now = this.#records.readClockMs()
    if (this.#sweeps > 0) this.#records.sweep(now, this.#sweeps)
    const expiresAt = now + retentionMs
    this.#records.write(key, { state: 'completed', token, fingerprint, attempt, answer, expiresAt })
  }

  #assertMayComplete(allowEmpty: boolean): void {
    this.#connection.assertMarked()
    if (!allowEmpty && !this.#connection.hasWritten())
      throw new SqliteStoreError('nothing_written', ADVICE.nothing_written)
  }
}

/**
 * Completes a record in a transaction that the application opened, on its own connection or on the store's.
 *
 * @throws SqliteStoreError: roll the transaction back.
 */
export function completeByHand(
  connection: SqliteConnection,
  records: SqliteRecords,
  key: string,
  completion: Completion,
): void {
  try {
    connection.assertWrittenAndDurable()
    completeRecord(records, key, completion)
  } catch (error) {
    if (!/no such table/.test(findClientMessage(error))) throw storeError(error)
    throw new SqliteStoreError('record_absent', ADVICE.record_absent)
  }
}

function completeRecord(records: SqliteRecords, key: string, { token, retentionMs, answer }: Completion): void {
  const now = records.readClockMs()
  const found = requireOwned(records.find(key, now), token, SqliteStoreError)
  const { fingerprint, attempt } = found
  const expiresAt = now + retentionMs
  records.write(key, { state: 'completed', token, fingerprint, attempt, answer, expiresAt })
}
