import { Buffer } from 'node:buffer'
import { type ListedRecords, toListedRecord, toListedRecordIfUnknown } from '../../../src/core/index.js'
import { collectListed, type Row } from '../../sql/record-columns.js'
import type { SweepIntervals } from '../../sql/sweep-timer.js'
import type { MySqlDatabase } from '../connection/database.js'
import { isLocked } from '../errors.js'
import { clockIsSetError } from './clock.js'
import { parseFoundRow } from './record-row.js'
import type { Statements } from './statements.js'

const ROWS_A_LIST = 1_000
const ROWS_A_SWEEP = 500

/** How long a process has the turn for one step, at most: then another one takes it. */
const TURN_MS = 60_000

/** What goes through the table, in steps in the order of the ids, which are random: no index is needed for it. */
export class TableWalker {
  readonly #database: MySqlDatabase
  readonly #statements: Statements

  constructor(database: MySqlDatabase, statements: Statements) {
    this.#database = database
    this.#statements = statements
  }

  listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return this.#list(from, toListedRecord, (key) => key.startsWith(`${scope}:`))
  }

  listUnknown(from: string | null): Promise<ListedRecords> {
    return this.#list(from, toListedRecordIfUnknown, () => true)
  }

  async sweepAll(): Promise<number> {
    let removed = 0
    for (let from: string | null = ''; from !== null; ) {
      const step: SweepResult = await this.#sweep(from)
      removed += step.removed
      from = step.next
    }
    return removed
  }

  /** One step of the sweep of all processes. Resolves with whether it was this one's turn, and there is more. */
  async sweepStepIfDue({ pauseMs, restMs }: SweepIntervals): Promise<boolean> {
    const { turn, progress, turned } = this.#statements
    if ((await this.#database.write(turn(TURN_MS))) === 0) return false
    const [row] = await this.#database.queryRows(progress())
    const { next } = await this.#sweep(String(row?.next_id ?? ''))
    await this.#database.write(turned(next ?? '', next === null ? restMs : pauseMs))
    return next !== null
  }

  async #sweep(from: string): Promise<SweepResult> {
    const rows = await this.#database.queryRows(this.#statements.expired(from, ROWS_A_SWEEP))
    if (rows[0]?.is_set === '1') throw clockIsSetError()
    const expired = rows.filter(({ is_expired }) => is_expired === '1').map(({ id }) => String(id))
    // By their ids, so that no other row is locked, or waited for.
    const removed = expired.length === 0 ? 0 : await this.#removeExpired(expired)
    return { removed, next: rows.length < ROWS_A_SWEEP ? null : String(rows.at(-1)?.id) }
  }

  /** Rows that a transaction has locked, which takes their keys, are left for the next time, and with them the others of this step. */
  async #removeExpired(ids: readonly string[]): Promise<number> {
    try {
      return await this.#database.write(this.#statements.removeExpired(ids))
    } catch (error) {
      if (isLocked(error)) return 0
      throw error
    }
  }

  async #list(
    from: string | null,
    show: typeof toListedRecord,
    isAsked: (key: string) => boolean,
  ): Promise<ListedRecords> {
    const rows = await this.#database.queryRows(this.#statements.walk(from ?? '', ROWS_A_LIST))
    const keyOf = ({ name }: Row) => Buffer.from(String(name), 'hex').toString()
    const asked = rows.filter((row) => isAsked(keyOf(row)))
    const shown = collectListed(asked, keyOf, (row) => {
      const { record, now } = parseFoundRow({ ...row, body: row.bodiless === '1' ? null : NOT_READ, steps: null })
      return show(record, now)
    })
    return { ...shown, next: rows.length < ROWS_A_LIST ? null : String(rows.at(-1)?.id) }
  }
}

/** In place of a body: what is listed has none. */
const NOT_READ = new Uint8Array()

interface SweepResult {
  readonly removed: number
  /** The last id; `null`: the end of the table. */
  readonly next: string | null
}
