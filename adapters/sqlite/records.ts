import type { StoredStep } from '../../src/core/index.js'
import {
  buildUnreadableMessage,
  DamagedRowError,
  LATER_FORMAT,
  parseRecordRow,
  requireIntegerColumn,
  requireTextColumn,
  type StoredRecord,
  toRecordColumns,
} from '../sql/record-columns.js'
import type { Row, SqliteValue } from './client.js'
import type { Connection } from './connection.js'
import { SqliteStoreError } from './errors.js'
import { FORMAT } from './table.js'

/** The rows of the records, read and written in the open transaction. */
export class SqliteRecords {
  readonly #connection: Connection
  readonly #clock: () => number

  constructor(connection: Connection, clock: () => number) {
    this.#connection = connection
    this.#clock = clock
  }

  /** An integer, as the table's columns require. */
  readClockMs(): number {
    return Math.floor(this.#clock())
  }

  /** @throws SqliteStoreError `record_unreadable`. */
  find(key: string, now: number): StoredRecord | null {
    const record = parseOptionalRow(this.#connection.queryRow('read', key), now)
    if (record === null || record.state === 'completed') return record
    const rows = this.#connection.queryRows('readSteps', key)
    return rows.length === 0 ? record : addParsedSteps(record, rows)
  }

  write(key: string, record: StoredRecord, found: StoredRecord | null): void {
    this.#connection.change('write', key, ...toRowValues(record))
    // An expired record counts as none, and its steps may still be there.
    if (found === null) this.#connection.change('dropSteps', key)
    const before = toStepRows(found)
    const after = toStepRows(record)
    if (before === after) return
    for (const { label } of before ?? []) {
      if (after?.some((step) => step.label === label) !== true) this.#connection.change('dropStep', key, label)
    }
    after?.forEach((step, i) => {
      const { label, state, order, result } = step
      if (before?.includes(step) !== true) this.#connection.change('writeStep', key, label, i, state, order, result)
    })
  }

  remove(key: string): void {
    this.#connection.change('remove', key)
  }

  /** Removes some expired rows, the oldest first. Returns their number. */
  sweep(now: number, most: number): number {
    return this.#connection.change('sweep', now, most)
  }
}

/** The row of an operator's mark, which no step has: a label is never empty. */
const MARK = { label: '', state: 'rerun', order: 0, result: null } as const

type StepRow = Omit<StoredStep, 'state'> & { readonly state: StoredStep['state'] | 'rerun' }

/** The same array while the steps are the same. */
function toStepRows(record: StoredRecord | null): readonly StepRow[] | undefined {
  if (record === null || record.state === 'completed') return undefined
  return record.state === 'failed' && record.rerun === true ? [MARK, ...(record.steps ?? [])] : record.steps
}

function addParsedSteps(record: Exclude<StoredRecord, { state: 'completed' }>, rows: readonly Row[]): StoredRecord {
  const isMarked = rows.some(({ state }) => state === MARK.state)
  const steps = rows.filter(({ state }) => state !== MARK.state).map(parseStepRow)
  const having = steps.length === 0 ? {} : { steps }
  return record.state === 'failed' && isMarked ? { ...record, ...having, rerun: true } : { ...record, ...having }
}

/**
 * The record in a row; `null` if there is no row or it has expired.
 *
 * @throws SqliteStoreError `record_unreadable`.
 */
export function parseOptionalRow(row: Row | undefined, now: number): StoredRecord | null {
  if (row === undefined) return null
  return convertDamagedRowError(() => {
    if (now >= requireIntegerColumn(row, 'expires_at')) return null
    if (row.format !== FORMAT) throw unreadableRecordError(LATER_FORMAT)
    return parseRecordRow(row)
  })
}

/** In the order of the table's columns. */
function toRowValues(record: StoredRecord): SqliteValue[] {
  return [FORMAT, ...Object.values(toRecordColumns(record))]
}

/** @throws SqliteStoreError `record_unreadable`. */
function parseStepRow(row: Row): StoredStep {
  return convertDamagedRowError(() => {
    const { state, result } = row
    if (state !== 'begun' && state !== 'done' && state !== 'undone') throw new DamagedRowError('state of a step')
    if (result !== null && !(result instanceof Uint8Array)) throw new DamagedRowError('result')
    return { label: requireTextColumn(row, 'label'), state, order: requireIntegerColumn(row, 'step_order'), result }
  })
}

function convertDamagedRowError<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw error instanceof DamagedRowError ? unreadableRecordError(error.message) : error
  }
}

function unreadableRecordError(because: string): SqliteStoreError {
  return new SqliteStoreError('record_unreadable', buildUnreadableMessage(because))
}
