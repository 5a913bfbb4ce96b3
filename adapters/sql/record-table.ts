import { createHash } from 'node:crypto'
import type { Claim, Completion, Ownership } from '../../src/core/index.js'
import {
  buildUnreadableMessage,
  parseSnapshot,
  type RecordSnapshot,
  type RowVersion,
  type StoredRecord,
  toAnswerColumns,
  toRecordColumns,
} from './record-columns.js'
import type { Row } from './row.js'
import type { CommandKind, RecordTable } from './row-store.js'
import type { SqlValues } from './statement.js'
import type { ListedStretch, SweptStretch, WalkedTable } from './table-walks.js'

/** The statements that both databases with a server have, each with the values that it names. */
type RecordStatements<Statement> = Readonly<
  Record<
    'read' | 'readShown' | 'readUnlessRowLocked' | 'insert' | 'update' | 'remove' | 'renew' | 'complete',
    (values: SqlValues) => Statement
  >
>

/** Where statements are sent, each a transaction of its own. `isUrgent`: late, it is worth nothing. */
interface RecordDatabase<Statement> {
  /** How many bytes a statement may have. */
  readonly mostStatementBytes: number
  queryRows(statement: Statement, isUrgent?: boolean): Promise<readonly Row[]>
  /** Resolves with how many rows were written: none of those that would be there twice. */
  write(statement: Statement, isUrgent?: boolean): Promise<number>
}

/** The records in a table of a database with a server: what `RowStore` needs, by the statements of a dialect. */
export abstract class SqlRecordTable<Statement> implements RecordTable, WalkedTable {
  readonly #database: RecordDatabase<Statement>
  readonly #statements: RecordStatements<Statement>

  constructor(database: RecordDatabase<Statement>, statements: RecordStatements<Statement>) {
    this.#database = database
    this.#statements = statements
  }

  abstract claim(key: string, claim: Claim): Promise<'inserted' | RecordSnapshot>
  abstract readUnlessKeyLocked(key: string): Promise<RecordSnapshot | 'locked'>
  abstract listStretch(from: string | null, prefix: string | null): Promise<ListedStretch>
  abstract sweepStretch(from: string | null): Promise<SweptStretch>
  abstract takeSweepTurn(turnMs: number): Promise<{ readonly from: string | null } | null>
  abstract releaseSweepTurn(from: string | null, pauseMs: number): Promise<void>
  abstract isLocked(error: unknown): boolean
  abstract createError(code: 'contended' | 'record_unreadable', message: string): Error
  /** How long the database waits for a locked row, where each statement says it; `null`: its sessions are set. */
  protected abstract getLockWait(kind: CommandKind): string | null
  /** The columns as `parseSnapshot` reads them. Throws if the row is not to be trusted. */
  protected abstract toColumns(row: Row): Row

  get mostStatementBytes(): number {
    return this.#database.mostStatementBytes
  }

  async read(key: string, fingerprint?: string, kind: CommandKind = 'command'): Promise<RecordSnapshot> {
    const { read, readShown } = this.#statements
    const id = computeRecordId(key)
    const sent = fingerprint === undefined ? read({ id }) : readShown({ id, fingerprint })
    const [row = {}] = await this.#database.queryRows(sent, isUrgent(kind))
    return this.parseRow(row)
  }

  async readUnlessRowLocked(key: string, kind: CommandKind = 'claim'): Promise<RecordSnapshot | 'locked'> {
    try {
      const sent = this.#statements.readUnlessRowLocked({ id: computeRecordId(key) })
      const [row] = await this.#database.queryRows(sent, isUrgent(kind))
      return row === undefined ? await this.read(key, undefined, kind) : this.parseRow(row)
    } catch (error) {
      if (this.isLocked(error)) return 'locked'
      throw error
    }
  }

  insert(key: string, record: StoredRecord, kind: CommandKind): Promise<boolean> {
    const values = { ...toRecordColumns(record), id: computeRecordId(key), name: key, lockWait: this.getLockWait(kind) }
    return this.write(this.#statements.insert(values), kind)
  }

  update(key: string, record: StoredRecord, version: RowVersion, kind: CommandKind): Promise<boolean> {
    const values = { ...toRecordColumns(record), ...toVersionValues(key, version), lockWait: this.getLockWait(kind) }
    return this.write(this.#statements.update(values), kind)
  }

  remove(key: string, version: RowVersion, kind: CommandKind): Promise<boolean> {
    const values = { ...toVersionValues(key, version), lockWait: this.getLockWait(kind) }
    return this.write(this.#statements.remove(values), kind)
  }

  renew(key: string, { token, leaseMs, retentionMs }: Ownership & { readonly leaseMs: number }): Promise<boolean> {
    return this.write(this.#statements.renew({ id: computeRecordId(key), token, leaseMs, retentionMs }))
  }

  complete(key: string, completion: Completion): Promise<boolean> {
    return this.write(this.#statements.complete(toCompletionValues(key, completion)))
  }

  parseRow(row: Row): RecordSnapshot {
    const toError = (because: string) => this.createError('record_unreadable', buildUnreadableMessage(because))
    return parseSnapshot(this.toColumns(row), toError)
  }

  protected async write(statement: Statement, kind: CommandKind = 'command'): Promise<boolean> {
    return (await this.#database.write(statement, isUrgent(kind))) > 0
  }
}

function isUrgent(kind: CommandKind): boolean {
  return kind !== 'command'
}

/** A storage key may exceed the maximum size of an index entry. */
export function computeRecordId(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

export function toClaimValues(key: string, { token, fingerprint, leaseMs, retentionMs }: Claim) {
  return { id: computeRecordId(key), name: key, token, fingerprint, leaseMs, retentionMs }
}

export function toCompletionValues(key: string, { token, retentionMs, answer }: Completion) {
  return { id: computeRecordId(key), token, retentionMs, ...toAnswerColumns(answer) }
}

function toVersionValues(key: string, { token, revision, expiresAt }: RowVersion) {
  return { id: computeRecordId(key), seen: token, revision, expiresAt }
}
