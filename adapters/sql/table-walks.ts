import { type ListedRecord, type ListedRecords, toListedRecord, toListedRecordIfUnknown } from '../../src/core/index.js'
import type { SqlRecordTable, SweptStretch } from './record-table.js'
import type { Row } from './row.js'
import type { SweepIntervals } from './sweep-timer.js'

/** How long a process has the turn for one stretch, at most: then another one takes it. */
const TURN_MS = 60_000

export class TableWalks {
  readonly #table: SqlRecordTable

  constructor(table: SqlRecordTable) {
    this.#table = table
  }

  listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return this.#list(from, `${scope}:`, toListedRecord)
  }

  listUnknown(from: string | null): Promise<ListedRecords> {
    return this.#list(from, null, toListedRecordIfUnknown)
  }

  async #list(from: string | null, prefix: string | null, show: typeof toListedRecord): Promise<ListedRecords> {
    const { rows, next } = await this.#table.listStretch(from, prefix)
    const listed = collectListedRecords(rows, (row) => {
      const { record, now } = this.#table.parseRow(row)
      return show(record, now)
    })
    return { ...listed, next }
  }

  /** Resolves with how many rows were removed. */
  async sweepAll(): Promise<number> {
    let removed = 0
    for (let from: string | null | undefined; from !== null; ) {
      const stretch: SweptStretch = await this.#table.sweepStretch(from ?? null)
      removed += stretch.removed
      from = stretch.next
    }
    return removed
  }

  /** One stretch of the sweep of all processes. Resolves with whether it was this one's turn, and there is more. */
  async sweepStretchIfOurTurn({ pauseMs, restMs }: SweepIntervals): Promise<boolean> {
    const turn = await this.#table.takeSweepTurn(TURN_MS)
    if (turn === null) return false
    const { next } = await this.#table.sweepStretch(turn.from)
    await this.#table.releaseSweepTurn(next, next === null ? restMs : pauseMs)
    return next !== null
  }
}

/** What is shown of rows. The keys of those that cannot be read are named apart. */
export function collectListedRecords(
  rows: readonly Row[],
  show: (row: Row) => Omit<ListedRecord, 'key'> | null,
): Omit<ListedRecords, 'next'> {
  const records: ListedRecord[] = []
  const unreadable: string[] = []
  for (const row of rows) {
    const key = String(row.name)
    try {
      const shown = show(row)
      if (shown !== null) records.push({ key, ...shown })
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== 'record_unreadable') throw error
      unreadable.push(key)
    }
  }
  return unreadable.length === 0 ? { records } : { records, unreadable }
}
