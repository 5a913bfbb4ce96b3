import { createHash } from 'node:crypto'
import type { Claim, Completion, ListedRecords, Ownership, toListedRecord } from '../../src/core/index.js'
import {
  buildUnreadableMessage,
  collectListedRecords,
  parseSnapshot,
  type RecordSnapshot,
  type RowVersion,
  type StoredRecord,
  toAnswerColumns,
  toRecordColumns,
} from './record-columns.js'
import type { Row } from './row.js'
import type { SqlValues } from './statement.js'
import type { SweepIntervals } from './sweep-timer.js'

/** What sends a statement: claims and releases are worth nothing late, and a claim waits less long for a locked row. */
export type CommandKind = 'claim' | 'release' | 'command'

/** A stretch of the table. `next`: where the next one begins; `null`: this is the last one. */
export interface ListedStretch {
  /** Without their answers and steps; `name` is the storage key. */
  readonly rows: readonly Row[]
  readonly next: string | null
}

export interface SweptStretch {
  readonly removed: number
  readonly next: string | null
}

/** The statements that both databases with a server have, each with the values that it names. */
type RecordStatements = Readonly<
  Record<
    'read' | 'readShown' | 'readUnlessRowLocked' | 'insert' | 'update' | 'remove' | 'renew' | 'complete',
    (values: SqlValues, kind?: CommandKind) => object
  >
>

/** Where statements are sent, each a transaction of its own. `isUrgent`: late, it is worth nothing. */
interface RecordDatabase {
  /** How many bytes a statement may have. */
  readonly maxStatementBytes: number
  queryRows(statement: object, isUrgent?: boolean): Promise<readonly Row[]>
  /** Resolves with how many rows were written: none of those that would be there twice. */
  write(statement: object, isUrgent?: boolean): Promise<number>
}

type StoreErrorClass = new (code: 'contended' | 'record_unreadable', message: string) => Error

/** How long a process has the turn for one stretch, at most: then another one takes it. */
const TURN_MS = 60_000

/**
 * The records in a table of a database with a server, by the statements of a dialect. Each method sends statements that are transactions
 * of their own, and may be sent twice. The table is walked in stretches, so that no statement takes long. `from`: `null` for the first one.
 */
export abstract class SqlRecordTable {
  abstract readonly database: RecordDatabase
  protected abstract readonly statements: RecordStatements
  abstract readonly StoreError: StoreErrorClass
  abstract readonly isLocked: (error: unknown) => boolean

  /** Inserts the record of a first claim; resolves with `inserted`, or with the row that is in its place. */
  abstract claim(key: string, claim: Claim): Promise<'inserted' | RecordSnapshot>
  /** The row as last committed; `locked`: a transaction has locked it, or has taken the key without a row. */
  abstract readUnlessKeyLocked(key: string): Promise<RecordSnapshot | 'locked'>
  /** All rows, or those whose key begins with the prefix. */
  abstract listStretch(from: string | null, prefix: string | null): Promise<ListedStretch>
  /** Removes what has expired. */
  abstract sweepStretch(from: string | null): Promise<SweptStretch>
  /** Takes the turn to sweep for so many milliseconds; `null`: another process has it, or it is not due. */
  abstract takeSweepTurn(turnMs: number): Promise<{ readonly from: string | null } | null>
  abstract releaseSweepTurn(from: string | null, pauseMs: number): Promise<void>
  /** The columns as `parseSnapshot` reads them. Throws if the row is not to be trusted. */
  protected abstract toColumns(row: Row): Row

  /** `fingerprint`: whoever sends another one is not shown the answer. */
  async read(key: string, fingerprint?: string, kind: CommandKind = 'command'): Promise<RecordSnapshot> {
    const { read, readShown } = this.statements
    const id = computeRecordId(key)
    const sent = fingerprint === undefined ? read({ id }) : readShown({ id, fingerprint })
    const [row = {}] = await this.database.queryRows(sent, isUrgent(kind))
    return this.parseRow(row)
  }

  /** The row as last committed; `locked`: a transaction has locked it. */
  readUnlessRowLocked(key: string, kind: CommandKind = 'claim'): Promise<RecordSnapshot | 'locked'> {
    const sent = this.statements.readUnlessRowLocked({ id: computeRecordId(key) })
    const found = this.database
      .queryRows(sent, isUrgent(kind))
      .then(([row]) => (row === undefined ? this.read(key, undefined, kind) : this.parseRow(row)))
    return this.resolveLockedAs(found, 'locked')
  }

  /** What was sent, or `replacement` if a transaction has locked the row. */
  async resolveLockedAs<Reply, const Replacement>(
    sent: Promise<Reply>,
    replacement: Replacement,
  ): Promise<Reply | Replacement> {
    try {
      return await sent
    } catch (error) {
      if (this.isLocked(error)) return replacement
      throw error
    }
  }

  /**
   * Inserts, updates or removes the row if it is still of this version; resolves with whether it was. A `record` that is `null` removes it. A
   * `version` that is `null` says that there is none.
   */
  async writeIfUnchanged(
    key: string,
    record: StoredRecord | null,
    version: RowVersion | null,
    kind: CommandKind,
  ): Promise<boolean> {
    if (record === null && version === null) return true
    const { insert, update, remove } = this.statements
    const values = { ...(record && toRecordColumns(record)), ...(version && toVersionValues(version)) }
    const build = version === null ? insert : record === null ? remove : update
    return this.write(build({ ...values, id: computeRecordId(key), name: key }, kind), kind)
  }

  /** Whether the token's own row was in flight, and has a new lease. */
  renew(key: string, { token, leaseMs, retentionMs }: Ownership & { readonly leaseMs: number }): Promise<boolean> {
    return this.write(this.statements.renew({ id: computeRecordId(key), token, leaseMs, retentionMs }))
  }

  /** Whether the token's own row was in flight, and is completed. */
  complete(key: string, completion: Completion): Promise<boolean> {
    return this.write(this.statements.complete(toCompletionValues(key, completion)))
  }

  /** A stretch of the records that `show` shows. */
  async list(from: string | null, prefix: string | null, show: typeof toListedRecord): Promise<ListedRecords> {
    const { rows, next } = await this.listStretch(from, prefix)
    const listed = collectListedRecords(rows, (row) => {
      const { record, now } = this.parseRow(row)
      return show(record, now)
    })
    return { ...listed, next }
  }

  /** Resolves with how many rows were removed. */
  async sweepAll(): Promise<number> {
    let removed = 0
    for (let from: string | null | undefined; from !== null; ) {
      const stretch: SweptStretch = await this.sweepStretch(from ?? null)
      removed += stretch.removed
      from = stretch.next
    }
    return removed
  }

  /** One stretch of the sweep of all processes. Resolves with whether it was this one's turn, and there is more. */
  async sweepStretchIfOurTurn({ pauseMs, restMs }: SweepIntervals): Promise<boolean> {
    const turn = await this.takeSweepTurn(TURN_MS)
    if (turn === null) return false
    const { next } = await this.sweepStretch(turn.from)
    await this.releaseSweepTurn(next, next === null ? restMs : pauseMs)
    return next !== null
  }

  /** @throws the store's error `record_unreadable`. */
  parseRow(row: Row): RecordSnapshot {
    const toError = (because: string) => new this.StoreError('record_unreadable', buildUnreadableMessage(because))
    return parseSnapshot(this.toColumns(row), toError)
  }

  protected async write(statement: object, kind: CommandKind = 'command'): Promise<boolean> {
    return (await this.database.write(statement, isUrgent(kind))) > 0
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

function toVersionValues({ token, revision, expiresAt }: RowVersion) {
  return { seen: token, revision, expiresAt }
}
