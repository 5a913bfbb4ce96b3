import {
  type BeginReply,
  type Claim,
  type CommandReply,
  checkOptions,
  type Forgetting,
  IdempotencyError,
  type IdempotencyRecord,
  type ListedRecords,
  listed,
  listedIfUnknown,
  type MaybePromise,
  machine,
  type Ownership,
  type Resolution,
  SINGLE_TENANT,
  type Store,
  type StoreEvent,
  safeListener,
} from '../../src/core/index.js'
import { Bounds } from './bounds.js'
import { ClaimedRecords } from './claimed-records.js'
import { warnInClusterWorker } from './cluster-warning.js'
import { Failures } from './failures.js'
import { inOnePiece, KeptAnswer, NO_ANSWER } from './kept-answer.js'
import { listing } from './listing.js'
import { type MemoryStoreOptions, RULES } from './options.js'
import { type AnyReply, withOwnAnswer } from './own-answer.js'
import type { Entry } from './share.js'

type StoredRecord = machine.StoredRecord
type Completed = Extract<StoredRecord, { state: 'completed' }>
/** The scope of a command, if it has one. */
type Sender = { readonly scope?: string }

export type { MemoryStoreOptions }

/** Operators only replace existing records, which keep their scope. */
const NOBODY: Sender = {}

/** An estimate of what V8 and lru-cache need besides text and bytes. */
const RECORD_OVERHEAD_BYTES = 600

/** Room for some hundred failures of each kind, even in a tiny store. */
const LEAST_FAILURE_BYTES = 256 * 1024

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
  /** Events that are not emitted yet. */
  #happened: StoreEvent[] = []

  readonly #claimed: ClaimedRecords
  readonly #uncertain: Failures
  /** Certain failures keep only the attempt number and a fence against late commands. */
  readonly #certain: Failures

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built. */
  constructor(options: MemoryStoreOptions = {}) {
    const given = Object(options) as MemoryStoreOptions
    const { maxBytes = 128 * 2 ** 20, maxEntries = 1_000_000, maxScopeShare = 0.5, whenFull = 'refuse' } = given
    const { maxUncertainBytes, now = () => performance.now() } = given
    const values = { maxBytes, maxEntries, maxUncertainBytes, maxScopeShare, whenFull, now }
    checkOptions('MemoryStore', options, values, RULES)
    this.#now = now
    this.#claimed = new ClaimedRecords(new Bounds({ maxBytes, maxEntries, maxScopeShare }), whenFull === 'evict')
    const failures = (bytes: number) =>
      new Failures(bytes, new Bounds({ maxBytes: bytes, maxEntries: Number.POSITIVE_INFINITY, maxScopeShare }))
    this.#uncertain = failures(maxUncertainBytes ?? Math.max(LEAST_FAILURE_BYTES, Math.floor(maxBytes / 2)))
    this.#certain = failures(Math.max(LEAST_FAILURE_BYTES, Math.floor(maxBytes / 8)))
    warnInClusterWorker()
  }

  begin(key: string, claim: Claim): MaybePromise<BeginReply> {
    const now = this.#now()
    const before = this.#find(key)
    const step = machine.begin(recordOf(before), claim, now)
    if (step.reply.acquired && !isClaimed(before)) {
      this.#makeRoom(step.record as StoredRecord, key, scopeOf(claim), now)
    }
    return this.#done(step, key, claim, before, now)
  }

  renew(key: string, own: Ownership & { readonly leaseMs: number }): MaybePromise<CommandReply> {
    const now = this.#now()
    const before = this.#find(key)
    return this.#done(machine.renew(recordOf(before), own, now), key, own, before, now)
  }

  complete(key: string, own: Parameters<Store['complete']>[1]): MaybePromise<CommandReply> {
    const answer = new KeptAnswer(own.answer)
    const now = this.#now()
    const before = this.#find(key)
    const { record, reply } = machine.complete(recordOf(before), { ...own, answer }, now)
    const kept =
      record === recordOf(before) ? record : this.#affordable(record as StoredRecord, key, scopeOf(own), before, now)
    return this.#done({ record: kept, reply }, key, own, before, now)
  }

  release(key: string, own: Ownership & { readonly failedMs: number }): MaybePromise<CommandReply> {
    const now = this.#now()
    const before = this.#find(key)
    return this.#done(machine.release(recordOf(before), own, now), key, own, before, now)
  }

  inspect(key: string): MaybePromise<IdempotencyRecord | null> {
    const now = this.#now()
    const before = this.#find(key)
    const { record, reply } = machine.inspect(recordOf(before), now)
    return this.#done({ record, reply: { record: reply } }, key, NOBODY, before, now).record
  }

  /** All in one step: what is completed, by far the most, is not looked at. */
  list(): ListedRecords {
    const now = this.#now()
    return listing([this.#claimed.inFlight(), this.#uncertain.all()], ({ record }) => listedIfUnknown(record, now))
  }

  /** All in one step. */
  listScope(scope: string): ListedRecords {
    const now = this.#now()
    const places = [this.#claimed.inFlight(), this.#claimed.completed(), this.#uncertain.all(), this.#certain.all()]
    return listing(places, ({ key, record }) => (key.startsWith(`${scope}:`) ? listed(record, now) : null))
  }

  /** A resolution is always kept, even if the store is full. */
  resolve(key: string, resolution: Resolution): MaybePromise<CommandReply> {
    const answer = resolution.answer && new KeptAnswer(resolution.answer)
    const now = this.#now()
    const before = this.#find(key)
    return this.#done(machine.resolve(recordOf(before), { ...resolution, answer }, now), key, NOBODY, before, now)
  }

  forget(key: string, forgetting: Forgetting): MaybePromise<CommandReply> {
    const before = this.#find(key)
    const { record, reply } = machine.forget(recordOf(before), forgetting, this.#now())
    if (before === undefined || !reply.ok || record === before.record) return reply
    if (record === null) this.#placeOf(before.record).drop(before)
    else
      this.#claimed.shrink(before, { ...(record as Completed), answer: NO_ANSWER }, RECORD_OVERHEAD_BYTES + key.length)
    return reply
  }

  observe(listener: (event: StoreEvent) => void): void {
    this.#listeners.push(safeListener(listener))
  }

  /** Deletes every record, including those in flight: for tests. */
  clear(): void {
    for (const kind of [this.#claimed, this.#uncertain, this.#certain]) kind.clear()
  }

  /** Writes the new record, if the command changed it, and replies. */
  #done<Reply extends AnyReply>(
    { record, reply }: machine.Step<Reply>,
    key: string,
    sender: Sender,
    before: Entry | undefined,
    now: number,
  ): Reply {
    if (record !== null && record !== before?.record) this.#write(key, sender, before, record, now)
    if (this.#happened.length > 0) this.#emit()
    return withOwnAnswer(reply)
  }

  #find(key: string): Entry | undefined {
    return this.#claimed.find(key) ?? this.#uncertain.find(key) ?? this.#certain.find(key)
  }

  #write(key: string, sender: Sender, before: Entry | undefined, record: StoredRecord, now: number): void {
    inOnePiece(key)
    if (record.fingerprint !== null) inOnePiece(record.fingerprint)
    const scope = before?.share.scope ?? scopeOf(sender)
    const bytes = sizeOf(record, key)
    const isMoved = before !== undefined && this.#placeOf(before.record) !== this.#placeOf(record)
    if (record.state !== 'failed') this.#claimed.put(key, scope, record, bytes, now, isMoved ? undefined : before)
    else if (!record.uncertain) this.#certain.put(key, scope, record, bytes, now)
    else this.#evicted(this.#uncertain.put(key, scope, record, bytes, now), 'failed')
    if (isMoved) this.#placeOf(before.record).drop(before)
  }

  /** A key has a record in one place only. */
  #placeOf(record: StoredRecord): ClaimedRecords | Failures {
    if (record.state !== 'failed') return this.#claimed
    return record.uncertain ? this.#uncertain : this.#certain
  }

  /** @throws IdempotencyError `store_full`; nothing was dropped except expired records. */
  #makeRoom(record: StoredRecord, key: string, scope: string, now: number): void {
    const evictions = this.#claimed.makeRoomForClaim(scope, sizeOf(record, key), now)
    if (evictions === null) throw this.#full()
    this.#evicted(evictions, 'completed')
  }

  /**
   * The record without its answer if the answer would exceed the scope's share: the completion itself is always kept.
   */
  #affordable(record: StoredRecord, key: string, scope: string, before: Entry | undefined, now: number): StoredRecord {
    const growsBy = sizeOf(record, key) - (isClaimed(before) ? before.bytes : 0)
    const evictions = this.#claimed.makeRoomForAnswer(scope, growsBy, now)
    if (evictions !== null) {
      this.#evicted(evictions, 'completed')
      return record
    }
    this.#happened.push({ type: 'answer_dropped' })
    return { ...(record as Completed), answer: NO_ANSWER }
  }

  #full(): IdempotencyError {
    const { count, bytes } = this.#claimed.total()
    return new IdempotencyError(
      'store_full',
      `The memory store is full (${count} records, ${bytes} bytes), or the claiming scope holds more than is still ` +
        'free, and no record may be dropped yet. Raise maxBytes or maxEntries, shorten retentionMs, or use Redis; if one scope may use ' +
        'more of it, raise maxScopeShare.',
    )
  }

  #evicted(times: number, state: 'completed' | 'failed'): void {
    for (let i = 0; i < times; i++) this.#happened.push({ type: 'evicted', state })
  }

  /** After the command has done its work: a listener may call the store. */
  #emit(): void {
    const happened = this.#happened
    this.#happened = []
    for (const event of happened) for (const emit of this.#listeners) emit(event)
  }
}

function recordOf(entry: Entry | undefined): StoredRecord | null {
  return entry === undefined ? null : entry.record
}

/** Whether the record's claim is counted in its share already. */
function isClaimed(entry: Entry | undefined): entry is Entry {
  return entry !== undefined && entry.record.state !== 'failed'
}

/** A caller without types may omit the scope: then it shares with nobody. */
function scopeOf({ scope }: Sender): string {
  return scope ?? SINGLE_TENANT
}

function sizeOf(record: StoredRecord, key: string): number {
  const { answer } = record as { answer?: KeptAnswer }
  return RECORD_OVERHEAD_BYTES + key.length + (answer?.byteLength ?? 0)
}
