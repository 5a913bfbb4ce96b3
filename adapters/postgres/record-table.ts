import type { Claim } from '../../src/core/index.js'
import { INTEGER_COLUMNS, type RecordSnapshot } from '../sql/record-columns.js'
import {
  computeRecordId,
  type ListedStretch,
  SqlRecordTable,
  type SweptStretch,
  toClaimValues,
} from '../sql/record-table.js'
import { parseIntegerColumns, type Row } from '../sql/row.js'
import type { PostgresDatabase } from './database.js'
import { isLocked, PostgresStoreError } from './errors.js'
import { createRecordStatements } from './record-statements.js'
import { assertColumnsAreText, parseBytesColumn, requireText } from './reply.js'
import { computeLockNumber } from './sql.js'

/** 8 KiB each: a stretch reads 1 MiB, in some milliseconds. */
const BLOCKS_A_STRETCH = 128

/** The number of a page has 32 bits. */
const MOST_BLOCKS = 0xffff_ffff

/** The records in a table of Postgres. */
export class PostgresRecordTable extends SqlRecordTable {
  readonly database: PostgresDatabase
  readonly StoreError = PostgresStoreError
  readonly isLocked = isLocked
  protected readonly statements: ReturnType<typeof createRecordStatements>
  readonly #schema: string

  constructor(database: PostgresDatabase, schema: string) {
    super()
    this.database = database
    this.statements = createRecordStatements(schema)
    this.#schema = schema
  }

  async claim(key: string, claim: Claim): Promise<'inserted' | RecordSnapshot> {
    const row = await this.database.queryRow(this.statements.claim(toClaimValues(key, claim)), true)
    return row.inserted === '1' ? 'inserted' : this.parseRow(row)
  }

  /** The lock first: whatever its last holder has committed can be read by a later statement. */
  async readUnlessKeyLocked(key: string): Promise<RecordSnapshot | 'locked'> {
    const lock = computeLockNumber(computeRecordId(key), this.#schema)
    const { free } = await this.database.queryRow(this.statements.tryLock({ lock }))
    return free === '1' ? this.read(key) : 'locked'
  }

  /** @throws PostgresStoreError `client_unsuitable` */
  protected toColumns(row: Row): Row {
    assertColumnsAreText(row)
    requireText(row, 'now')
    const [body, steps] = [parseBytesColumn(row.body), parseBytesColumn(row.steps)]
    return parseIntegerColumns({ ...row, body, steps }, ['now', ...INTEGER_COLUMNS])
  }

  async listStretch(from: string | null, prefix: string | null): Promise<ListedStretch> {
    const { list, listPrefix } = this.statements
    const stretch = toStretchValues(from)
    const sent = prefix === null ? list(stretch) : listPrefix({ ...stretch, prefix })
    const rows = await this.database.queryStretch(sent)
    return { rows: rows.filter(({ name }) => name !== null), next: findNextBlock(from, rows[0]) }
  }

  async sweepStretch(from: string | null): Promise<SweptStretch> {
    const [row] = await this.database.queryStretch(this.statements.sweep(toStretchValues(from)))
    return { removed: Number(requireText(row, 'removed')), next: findNextBlock(from, row) }
  }

  async takeSweepTurn(turnMs: number): Promise<{ readonly from: string | null } | null> {
    const [row] = await this.database.queryRows(this.statements.takeTurn({ turnMs }))
    return row === undefined ? null : { from: requireText(row, 'block') }
  }

  async releaseSweepTurn(from: string | null, pauseMs: number): Promise<void> {
    await this.write(this.statements.releaseTurn({ block: Number(from ?? 0), pauseMs }))
  }
}

function toStretchValues(from: string | null) {
  const block = Number(from ?? 0)
  return { first: `(${block},0)`, beyond: `(${Math.min(block + BLOCKS_A_STRETCH, MOST_BLOCKS)},0)` }
}

/** `null` behind the last page. */
function findNextBlock(from: string | null, row: Row | undefined): string | null {
  const next = Number(from ?? 0) + BLOCKS_A_STRETCH
  return next < Number(requireText(row, 'blocks')) ? `${next}` : null
}
