import { Buffer } from 'node:buffer'
import type { Claim } from '../../src/core/index.js'
import { INTEGER_COLUMNS, type RecordSnapshot } from '../sql/record-columns.js'
import { type ListedStretch, SqlRecordTable, type SweptStretch, toClaimValues } from '../sql/record-table.js'
import { parseIntegerColumns, type Row } from '../sql/row.js'
import type { MySqlDatabase } from './database.js'
import { isLocked, MySqlStoreError } from './errors.js'
import { clockIsSetError } from './session.js'
import { createRecordStatements } from './statements.js'

const ROWS_A_LIST = 1_000
const ROWS_A_SWEEP = 500

/** The records in a table of MySQL or MariaDB. */
export class MySqlRecordTable extends SqlRecordTable {
  readonly database: MySqlDatabase
  readonly StoreError = MySqlStoreError
  readonly isLocked = isLocked
  protected readonly statements: ReturnType<typeof createRecordStatements>

  constructor(database: MySqlDatabase, prefix: string) {
    super()
    this.database = database
    this.statements = createRecordStatements(prefix)
  }

  async claim(key: string, claim: Claim): Promise<'inserted' | RecordSnapshot> {
    if (await this.write(this.statements.claim(toClaimValues(key, claim)), 'claim')) return 'inserted'
    return this.read(key, claim.fingerprint, 'claim')
  }

  /** A transaction that has taken a key has locked a row. */
  readUnlessKeyLocked(key: string): Promise<RecordSnapshot | 'locked'> {
    return this.readUnlessRowLocked(key, 'command')
  }

  /**
   * @throws MySqlStoreError `read_only`: the server says that it is a replica, whose rows may be of the past; `database_unsuitable`: the
   * session's clock was set.
   */
  protected toColumns(row: Row): Row {
    if (row.read_only === '1') {
      throw new MySqlStoreError('read_only', 'The server is read-only, as a replica is: connect to the primary.')
    }
    if (row.is_set === '1') throw clockIsSetError()
    return parseIntegerColumns(row, ['now', ...INTEGER_COLUMNS])
  }

  async listStretch(from: string | null, prefix: string | null): Promise<ListedStretch> {
    const sent = this.statements.list({ from: Buffer.from(from ?? '', 'hex'), rows: ROWS_A_LIST })
    const rows = await this.database.queryRows(sent)
    const named = rows.map((row) => ({
      ...row,
      name: Buffer.from(String(row.name), 'hex').toString(),
      body: row.bodiless === '1' ? null : NOT_READ,
      steps: null,
    }))
    return {
      rows: prefix === null ? named : named.filter(({ name }) => name.startsWith(prefix)),
      next: findNextId(rows, ROWS_A_LIST),
    }
  }

  /** By their ids, so that no other row is locked, or waited for. */
  async sweepStretch(from: string | null): Promise<SweptStretch> {
    const sent = this.statements.expired({ from: Buffer.from(from ?? '', 'hex'), rows: ROWS_A_SWEEP })
    const rows = await this.database.queryRows(sent)
    if (rows[0]?.is_set === '1') throw clockIsSetError()
    const expired = rows.filter(({ is_expired }) => is_expired === '1').map(({ id }) => Buffer.from(String(id), 'hex'))
    const next = findNextId(rows, ROWS_A_SWEEP)
    if (expired.length === 0) return { removed: 0, next }
    const removing = this.database.write(this.statements.removeExpired(expired))
    // Rows that a transaction has locked, which takes their keys, are left for the next time, and with them the others of this step.
    return { removed: await this.resolveLockedAs(removing, 0), next }
  }

  async takeSweepTurn(turnMs: number): Promise<{ readonly from: string | null } | null> {
    if (!(await this.write(this.statements.takeTurn({ turnMs })))) return null
    const [row] = await this.database.queryRows(this.statements.progress())
    return { from: String(row?.next_id ?? '') }
  }

  async releaseSweepTurn(from: string | null, pauseMs: number): Promise<void> {
    await this.write(this.statements.releaseTurn({ from: Buffer.from(from ?? '', 'hex'), pauseMs }))
  }
}

/** In place of a body: what is listed has none. */
const NOT_READ = new Uint8Array()

/** `null` behind the last row. */
function findNextId(rows: readonly Row[], most: number): string | null {
  return rows.length < most ? null : String(rows.at(-1)?.id)
}
