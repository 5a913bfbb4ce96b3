import { isThenable, type MaybePromise, whenever } from '../maybe-promise.js'
import type { ListedRecord, ListedRecords } from '../record/record.js'
import { toListedRecord, toListedRecordIfUnknown } from '../record/shown.js'
import * as machine from '../record/whole-machine.js'
import { aFunction, resolveOptions } from '../validation.js'
import { contendedError, resultInvalidError } from './cas-store-error.js'
import { parseRecord } from './record-text.js'
import type { Store } from './store.js'

type StoredRecord = machine.StoredRecord

/** What `read` returns. */
export interface VersionedRecord<Version> {
  /** As `swap` received it, or the text that `encodeRecord` made of it. `null`: there is no row, or no record in it. */
  readonly record: StoredRecord | string | null
  /** What `swap` compares. It must never come back for the key, also not after the row was removed. `null`: there is no row. */
  readonly version: Version | null
  /**
   * The time of the database, in milliseconds since 1970, if it has a clock: then an application server with a wrong clock changes nothing.
   * @default `now()` of the options
   */
  readonly now?: number | undefined
}

/** What `list` returns. */
export interface RecordPage {
  /** Each row with its key, and its record as `read` returns it. Expired records may be among them. */
  readonly records: readonly { readonly key: string; readonly record: StoredRecord | string }[]
  /** Where the next page begins; `null`: this is the last one. */
  readonly next: string | null
  /** As of `read`. */
  readonly now?: number | undefined
}

export interface CasStoreOptions<Version> {
  /**
   * Reads the row of a key, as the last write left it: not from a replica. `null`: there is none. A key can have more than 6,000
   * characters, so a database that limits them needs a hash of it.
   */
  readonly read: (key: string) => MaybePromise<VersionedRecord<Version> | null>

  /**
   * Writes the record only if the row still has this version, in one atomic step, and gives it a new version. A `version` of `null` means
   * that there must be no row. Returns whether it wrote. It may throw only if that is not known. From `expiresAt` on, in milliseconds since
   * 1970, the row counts as absent, and the database may delete it.
   */
  readonly swap: (
    key: string,
    version: Version | null,
    record: StoredRecord,
    expiry: { readonly expiresAt: number },
  ) => MaybePromise<boolean>

  /**
   * Removes the row, on the same conditions as `swap` writes it: when an operator removes a record by `forget`.
   * @default a record without content, which has just expired, is written in its place
   */
  readonly remove?: ((key: string, version: Version) => MaybePromise<boolean>) | undefined

  /**
   * One page of all rows: `from` is `null` at first, then the `next` of the page before. A row that does not change during the whole walk
   * must be in a page. With it the store has `list`, `listScope` and `forget`, for operators.
   */
  readonly list?: ((from: string | null) => MaybePromise<RecordPage>) | undefined

  /**
   * The clock for rows that `read` returns without a time, in milliseconds since 1970. Records that several processes use need clocks that
   * agree: one that is ahead ends the leases of the others early, by the difference.
   * @default Date.now
   */
  readonly now?: (() => number) | undefined
}

/**
 * A store over any database that can read a row, and write it only if nobody has changed it since (compare and set). The machine decides
 * what a command does to a record. If another command was faster, the record is read again, up to 20 times with growing random pauses.
 *
 * The store has `begin`, `renew`, `complete`, `release`, `step`, `inspect` and `resolve`; with the option `list` also `list`, `listScope`
 * and `forget`. It replies synchronously if `read` and `swap` do. It has no transactions. A record is plain data in which the bytes of an
 * answer and of the results of steps are `Uint8Array`. For a database that keeps no such objects, `encodeRecord` makes a text of it.
 *
 * @example
 * const rows = new Map<string, machine.StoredRecord>()
 *
 * const store = casStore({
 *   read: (key) => ({ record: rows.get(key) ?? null, version: rows.get(key) ?? null }),
 *   swap: (key, version, record) => {
 *     const isUnchanged = (rows.get(key) ?? null) === version
 *     if (isUnchanged) rows.set(key, record)
 *     return isUnchanged
 *   },
 * })
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built. Its commands throw CasStoreError, and what the
 * functions throw: then it is unknown whether the record was changed, and the command may be sent again.
 */
export function casStore<Version>(options: CasStoreOptions<Version>): Store {
  const rows = resolveOptions<ResolvedOptions<Version>>('casStore()', options, OPTIONS)
  const change = <Reply>(key: string, command: Command<Reply>) => changeRecord(rows, key, command, 1)
  const { list, now } = rows
  return {
    begin: (key, claim) => change(key, (record, now) => machine.begin(record, claim, now)),
    renew: (key, own) => change(key, (record, now) => machine.renew(record, own, now)),
    complete: (key, own) => change(key, (record, now) => machine.complete(record, own, now)),
    release: (key, own) => change(key, (record, now) => machine.release(record, own, now)),
    step: (key, own) => change(key, (record, now) => machine.step(record, own, now)),
    inspect: (key) => change(key, machine.inspect),
    resolve: (key, resolution) => change(key, (record, now) => machine.resolve(record, resolution, now)),
    ...(list && {
      list: (from) => whenever(adopt(list(from)), (page) => showPage(page, now, '', toListedRecordIfUnknown)),
      listScope: (scope, from) =>
        whenever(adopt(list(from)), (page) => showPage(page, now, `${scope}:`, toListedRecord)),
      forget: (key, forgetting) => change(key, (record, now) => machine.forget(record, forgetting, now)),
    }),
  }
}

type ResolvedOptions<Version> = CasStoreOptions<Version> & { readonly now: () => number }

const OPTIONS = {
  read: { rule: aFunction, isRequired: true },
  swap: { rule: aFunction, isRequired: true },
  remove: aFunction,
  list: aFunction,
  now: { rule: aFunction, default: () => Date.now() },
}

type Command<Reply> = (record: StoredRecord | null, now: number) => machine.Change<Reply>

const MOST_TURNS = 20
const LONGEST_PAUSE_MS = 128

function changeRecord<Version, Reply>(
  rows: ResolvedOptions<Version>,
  key: string,
  command: Command<Reply>,
  turn: number,
): MaybePromise<Reply> {
  return whenever(adopt(rows.read(key)), (found) => {
    const row = parseRow(found, rows.now)
    const { record, reply } = command(row.record, row.now)
    if (record === row.record) return reply
    return whenever(adopt(writeRecord(rows, key, row, record)), (hasWon) => {
      if (hasWon === true) return reply
      if (hasWon !== false) throw resultInvalidError(record === null ? 'remove' : 'swap', 'true or false', hasWon)
      if (turn === MOST_TURNS) throw contendedError(turn)
      return pause(turn).then(() => changeRecord(rows, key, command, turn + 1))
    })
  })
}

interface Row<Version> {
  /** `null`: there is none, or it has expired. */
  readonly record: StoredRecord | null
  readonly version: Version | null
  readonly now: number
}

function parseRow<Version>(found: VersionedRecord<Version> | null, clock: () => number): Row<Version> {
  if (found === null) return { record: null, version: null, now: readTime('now', undefined, clock) }
  const { record: kept, version, now: time } = Object(found) as Partial<VersionedRecord<Version>>
  // A record under another name is not an absent one.
  if (kept === undefined || version === undefined || (kept !== null && version === null)) {
    throw resultInvalidError('read', '{ record, version }, or null if there is no row', found)
  }
  const now = readTime('read', time, clock)
  const record = kept === null ? null : parseRecord(kept)
  return { record: record !== null && now < record.expiresAt ? record : null, version, now }
}

/** `undefined`: the clock's. In whole milliseconds, because operators see what is left of them. */
function readTime(of: string, given: unknown, clock: () => number): number {
  const time = given === undefined ? clock() : given
  if (Number.isFinite(time)) return Math.floor(time as number)
  throw resultInvalidError(given === undefined ? 'now' : of, 'a time in milliseconds, which is a number', time)
}

function writeRecord<Version>(
  { swap, remove }: ResolvedOptions<Version>,
  key: string,
  row: Row<Version>,
  record: StoredRecord | null,
): MaybePromise<boolean> {
  if (record !== null) return swap(key, row.version, record, { expiresAt: record.expiresAt })
  if (remove !== undefined) return remove(key, row.version as Version)
  const { token, attempt } = row.record as StoredRecord
  const expired = { state: 'failed', token, fingerprint: null, attempt, uncertain: false, expiresAt: row.now } as const
  return swap(key, row.version, expired, { expiresAt: row.now })
}

/** It keeps the process alive, because a caller waits for the command. */
function pause(turn: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(2 ** turn, LONGEST_PAUSE_MS)))
}

/** Clients return promises of their own classes. */
function adopt<Value>(value: MaybePromise<Value>): MaybePromise<Value> {
  return isThenable(value) ? Promise.resolve(value) : value
}

/** A record that cannot be read is named apart, so that the others are shown. */
function showPage(page: RecordPage, clock: () => number, start: string, show: typeof toListedRecord): ListedRecords {
  const { records: rows, next, now } = Object(page) as RecordPage
  if (!Array.isArray(rows) || !rows.every(isKeyed) || (next !== null && typeof next !== 'string')) {
    throw resultInvalidError('list', '{ records: [{ key, record }, …], next: a string or null }', page)
  }
  const at = readTime('list', now, clock)
  const records: ListedRecord[] = []
  const unreadable: string[] = []
  for (const { key, record } of rows.filter(({ key }) => key.startsWith(start))) {
    try {
      const shown = show(parseRecord(record), at)
      if (shown !== null) records.push({ key, ...shown })
    } catch {
      unreadable.push(key)
    }
  }
  return { records, next, ...(unreadable.length > 0 && { unreadable }) }
}

function isKeyed(row: unknown): boolean {
  return typeof Object(row).key === 'string'
}
