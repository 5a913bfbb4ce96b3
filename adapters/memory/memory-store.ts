import { Buffer } from 'node:buffer'
import cluster from 'node:cluster'
import { isMainThread } from 'node:worker_threads'
import {
  type BeginReply,
  type Claim,
  type CommandReply,
  type Forgetting,
  IdempotencyError,
  type IdempotencyRecord,
  type ListedRecord,
  type ListedRecords,
  type MaybePromise,
  machine,
  NOT_KEPT,
  type Ownership,
  type Resolution,
  SINGLE_TENANT,
  type Store,
  type StoreEvent,
  safeListener,
  toListedRecord,
  toListedRecordIfUnknown,
  warnOnce,
} from '../../src/core/index.js'
import type { MemoryEntry } from './entry.js'
import { type MemoryStoreOptions, readOptions } from './options.js'
import { computeSize } from './packed.js'
import { MemoryRecords } from './records.js'

type StoredRecord = machine.StoredRecord
type Sender = { readonly scope?: string }

/** Operators only replace existing records, which keep their scope. */
const NOBODY: Sender = {}

/** Room for some hundred failures of each kind, even in a tiny store. */
const LEAST_FAILURE_BYTES = 256 * 1024

/** How many records a step of a walk looks at: within a millisecond. */
const RECORDS_A_STEP = 1_000

/**
 * Keeps records in this process, for one process: nothing survives a restart, and other processes do not see them.
 * Bounded by bytes and by count; no scope can take all of it. Records in flight are never dropped. Each command returns
 * or throws (if the store is full) synchronously, so requests never wait for it.
 *
 * @example const once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })
 */
export class MemoryStore implements Store {
  readonly #now: () => number
  readonly #listeners: ((event: StoreEvent) => void)[] = []
  readonly #records: MemoryRecords

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built. */
  constructor(options: MemoryStoreOptions = {}) {
    const { maxBytes, maxUncertainBytes, whenFull, now, ...most } = readOptions(options)
    this.#now = () => Math.floor(now()) // Whole milliseconds: operators see what is left of them.
    this.#records = new MemoryRecords({
      ...most,
      maxBytes,
      maxUncertainBytes: maxUncertainBytes ?? Math.max(LEAST_FAILURE_BYTES, Math.floor(maxBytes / 2)),
      maxCertainBytes: Math.max(LEAST_FAILURE_BYTES, Math.floor(maxBytes / 8)),
      evicts: whenFull === 'evict',
    })
    warnOfOthers()
  }

  begin(key: string, claim: Claim): MaybePromise<BeginReply> {
    const now = this.#now()
    const before = this.#records.find(key)
    const change = machine.begin(toStoredRecord(before), claim, now)
    const { record } = change
    if (record === null || record === before) return change.reply
    const bytes = computeSize(key, record)
    if (!this.#records.makeRoomForClaim(getScopeOrDefault(claim), bytes, before, now)) throw this.#storeFullError()
    return this.#apply(key, claim, before, change, now, bytes)
  }

  renew(key: string, own: Ownership & { readonly leaseMs: number }): MaybePromise<CommandReply> {
    const now = this.#now()
    const before = this.#records.find(key)
    return this.#apply(key, own, before, machine.renew(toStoredRecord(before), own, now), now)
  }

  /** The completion is always kept; its answer, unless it would exceed the scope's share. */
  complete(key: string, own: Parameters<Store['complete']>[1]): MaybePromise<CommandReply> {
    const now = this.#now()
    const before = this.#records.find(key)
    const change = machine.complete(toStoredRecord(before), own, now)
    const { record } = change
    if (record === null || record === before) return change.reply
    const bytes = computeSize(key, record)
    if (this.#records.makeRoomForAnswer(getScopeOrDefault(own), bytes, before, now)) {
      return this.#apply(key, own, before, change, now, bytes)
    }
    this.#records.events.push({ type: 'answer_dropped' })
    const withoutAnswer = machine.complete(toStoredRecord(before), { ...own, answer: NOT_KEPT }, now)
    return this.#apply(key, own, before, withoutAnswer, now)
  }

  release(key: string, own: Ownership & { readonly failedMs: number }): MaybePromise<CommandReply> {
    const now = this.#now()
    const before = this.#records.find(key)
    return this.#apply(key, own, before, machine.release(toStoredRecord(before), own, now), now)
  }

  /** The step itself is always kept; its result, if there is room for it. */
  step(key: string, own: Parameters<NonNullable<Store['step']>>[1]): MaybePromise<CommandReply> {
    const now = this.#now()
    const before = this.#records.find(key)
    const change = machine.step(toStoredRecord(before), own, now)
    const { record } = change
    if (own.result === null || record === null || record === before) return this.#apply(key, own, before, change, now)
    const bytes = computeSize(key, record)
    const scope = before?.share?.scope ?? getScopeOrDefault(own)
    if (this.#records.makeRoomForStep(scope, bytes, before, now)) {
      return this.#apply(key, own, before, change, now, bytes)
    }
    const withoutResult = machine.step(toStoredRecord(before), { ...own, result: null }, now)
    return this.#apply(key, own, before, withoutResult, now)
  }

  /** The body is a copy, even a large one, which a replay sends without a copy. */
  inspect(key: string): MaybePromise<IdempotencyRecord | null> {
    const record = machine.inspect(toStoredRecord(this.#records.find(key)), this.#now()).reply
    if (record?.state !== 'completed' || !record.answer?.body) return record
    return { ...record, answer: { ...record.answer, body: Buffer.from(record.answer.body) } }
  }

  list(from: string | null = null): ListedRecords {
    const now = this.#now()
    return this.#readListedRecords(from, (entry) => toListedRecordIfUnknown(toStoredRecord(entry), now))
  }

  listScope(scope: string, from: string | null = null): ListedRecords {
    const now = this.#now()
    const start = `${scope}:`
    return this.#readListedRecords(from, (entry) =>
      entry.key.startsWith(start) ? toListedRecord(toStoredRecord(entry), now) : null,
    )
  }

  /** A resolution is always kept, even if the store is full. */
  resolve(key: string, resolution: Resolution): MaybePromise<CommandReply> {
    const now = this.#now()
    const before = this.#records.find(key)
    return this.#apply(key, NOBODY, before, machine.resolve(toStoredRecord(before), resolution, now), now)
  }

  forget(key: string, forgetting: Forgetting): MaybePromise<CommandReply> {
    const before = this.#records.find(key)
    const { record, reply } = machine.forget(toStoredRecord(before), forgetting, this.#now())
    if (before === undefined || !reply.ok || record === toStoredRecord(before)) return reply
    if (record === null) this.#records.remove(before)
    else this.#records.replaceInPlace(before, record, computeSize(key, record))
    return reply
  }

  observe(listener: (event: StoreEvent) => void): void {
    this.#listeners.push(safeListener(listener))
  }

  /** Deletes every record, including those in flight: for tests. */
  clear(): void {
    this.#records.clear()
  }

  /** `show`: `null` for a record that is not listed. */
  #readListedRecords(
    from: string | null,
    show: (entry: MemoryEntry) => Omit<ListedRecord, 'key'> | null,
  ): ListedRecords {
    const { entries, next } = this.#records.readSlice(Number(from ?? 0), RECORDS_A_STEP)
    const records: ListedRecord[] = []
    for (const entry of entries) {
      const shown = show(entry)
      if (shown !== null) records.push({ key: entry.key, ...shown })
    }
    return { records, next: next === null ? null : `${next}` }
  }

  /** Writes the new record, if the command changed it, whatever room there is: its claim was accepted. */
  #apply<Reply>(
    key: string,
    sender: Sender,
    before: MemoryEntry | undefined,
    { record, reply }: machine.Change<Reply>,
    now: number,
    bytes?: number,
  ): Reply {
    if (record === null || record === before) return reply
    this.#records.write(key, getScopeOrDefault(sender), record, bytes ?? computeSize(key, record), before, now)
    if (this.#records.events.length > 0) this.#emit()
    return reply
  }

  #storeFullError(): IdempotencyError {
    const { count, bytes } = this.#records.getUsage()
    return new IdempotencyError(
      'store_full',
      `The memory store is full (${count} records, ${bytes} bytes), or the claiming scope holds more than is still ` +
        'free, of the store or of what is set aside for unknown outcomes, and no record may be dropped yet. Raise ' +
        'maxBytes or maxEntries (or maxUncertainBytes, if many outcomes are unknown), shorten retentionMs, or use ' +
        'Redis; if one scope may use more of it, raise maxScopeShare.',
    )
  }

  /** After the command has done its work: a listener may call the store. */
  #emit(): void {
    for (const event of this.#records.events.splice(0)) for (const emit of this.#listeners) emit(event)
  }
}

/** An entry has what the machine reads of a record, whatever its state. */
function toStoredRecord(entry: MemoryEntry | undefined): StoredRecord | null {
  return entry === undefined ? null : (entry as object as StoredRecord)
}

/** A caller without types may omit the scope: then it shares with nobody. */
function getScopeOrDefault({ scope }: Sender): string {
  return scope ?? SINGLE_TENANT
}

function warnOfOthers(): void {
  if (!cluster.isWorker && isMainThread) return
  const [where, each] = cluster.isWorker ? ['node:cluster worker', 'worker'] : ['worker thread', 'thread']
  warnOnce(
    'ONCE_PER_KEY_MEMORY_STORE_IN_CLUSTER',
    `MemoryStore in a ${where}: each ${each} has its own records, so a retry that reaches another ${each} ` +
      'runs again. Use RedisStore from once-per-key/redis.',
  )
}
