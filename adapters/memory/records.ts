import { LRUCache } from 'lru-cache'
import { type machine, SINGLE_TENANT, type StoreEvent } from '../../src/core/index.js'
import { MemoryEntry, NO_USAGE, type Usage } from './entry.js'
import { copyContent } from './packed.js'
import { EntryPool } from './room.js'

type StoredRecord = machine.StoredRecord

/** How much a store keeps, and how scopes share it. */
interface Bounds {
  readonly maxBytes: number
  readonly maxEntries: number
  readonly maxUncertainBytes: number
  readonly maxCertainBytes: number
  readonly maxScopeShare: number
  readonly evicts: boolean
}

/** One object each, where the index would make one for each call. */
const NO_OPTIONS = {}
const SIZE = { size: 1 }

/** What room is needed for: a claim is one more record, and an answer or the result of a step makes one grow. */
type Growth = 'claim' | 'answer' | 'step'

/**
 * All records, within their bounds: those in flight and completed in one, uncertain failures in another. Certain failures
 * are the only ones that are dropped before they expire, unless the store evicts completed ones: they are only an attempt
 * number and a fence against late commands.
 */
export class MemoryRecords {
  readonly #inFlight = new EntryPool()
  readonly #completed = new EntryPool()
  readonly #uncertain = new EntryPool()
  readonly #certain = new EntryPool()
  /** Without bounds of its own, and in no order: the pools know which record may go. */
  readonly #index = new LRUCache<string, MemoryEntry>({ maxSize: Number.MAX_SAFE_INTEGER })
  readonly #bounds: Bounds
  /** What no listener was told yet. */
  readonly events: StoreEvent[] = []

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  find(key: string): MemoryEntry | undefined {
    return this.#index.peek(key, NO_OPTIONS)
  }

  /** Those in flight and completed. */
  getUsage(): Usage {
    const { count, bytes } = this.#completed
    return { count: this.#inFlight.count + count, bytes: this.#inFlight.bytes + bytes }
  }

  /**
   * Those of some places, and the next place; `null`: there is none. A record keeps its place in the index as long as it stays, whatever
   * comes and goes around it: no order by age or key would tell a walk where to go on.
   */
  readSlice(from: number, most: number): { readonly entries: readonly MemoryEntry[]; readonly next: number | null } {
    const places = LRUCache.unsafeExposeInternals(this.#index).valList as readonly (MemoryEntry | undefined)[]
    const beyond = from + most
    const entries = places.slice(from, beyond).filter((entry) => entry !== undefined)
    return { entries, next: beyond < places.length ? beyond : null }
  }

  /** Replaces the previous record of the key, if any, which keeps its scope. */
  write(
    key: string,
    scope: string,
    record: StoredRecord,
    bytes: number,
    before: MemoryEntry | undefined,
    now: number,
  ): void {
    const content = copyContent(record)
    const share = before === undefined ? null : before.share
    const owner = share === null ? scope : share.scope
    let entry = before
    if (entry === undefined || share === null) {
      entry = new MemoryEntry(key)
      this.#index.set(key, entry, SIZE)
    } else this.#getPool(entry).remove(entry)
    entry.setRecord(record, bytes, content)
    const pool = this.#getPool(entry)
    pool.add(entry, owner, now)
    if (pool === this.#certain) this.#dropCertain(owner, now)
  }

  /** Replaces a completed record by one without its answer, which keeps its place. */
  replaceInPlace(entry: MemoryEntry, record: StoredRecord, bytes: number): void {
    const content = copyContent(record)
    this.#completed.resizeEntry(entry, bytes - entry.bytes)
    entry.setRecord(record, bytes, content)
  }

  remove(entry: MemoryEntry): void {
    this.#index.delete(entry.key)
    this.#getPool(entry).remove(entry)
  }

  clear(): void {
    for (const pool of [this.#inFlight, this.#completed, this.#uncertain, this.#certain]) pool.clear()
    this.#index.clear()
  }

  /**
   * Makes room for a claim, and for its end: where the outcome will be unknown, it is kept until its retention ends. Returns whether there is
   * room (if not, nothing was evicted).
   */
  makeRoomForClaim(scope: string, bytes: number, before: MemoryEntry | undefined, now: number): boolean {
    if (before === undefined)
      return this.#mayEndUncertain(scope, bytes, now) && this.#makeRoom('claim', scope, bytes, now)
    const { state } = before
    const isCounted = state === 'in-flight' || before.uncertain
    if (!isCounted && !this.#mayEndUncertain(scope, bytes, now)) return false
    if (state !== 'failed') return true
    // A record that the marks of its steps have made larger than the store is claimed again where nothing else is.
    return this.#makeRoom('claim', scope, Math.min(bytes, this.#bounds.maxBytes), now)
  }

  /** The same for an answer that makes a record of the scope grow. Only the scope's share matters, since its claim has room. */
  makeRoomForAnswer(scope: string, bytes: number, before: MemoryEntry | undefined, now: number): boolean {
    const isClaimed = before !== undefined && before.state !== 'failed'
    return this.#makeRoom('answer', scope, isClaimed ? bytes - before.bytes : bytes, now)
  }

  /** The same for a step's result, which a failure that leaves the outcome unknown keeps, and the next attempt claims. */
  makeRoomForStep(scope: string, bytes: number, before: MemoryEntry | undefined, now: number): boolean {
    const growsBy = bytes - (before?.bytes ?? 0)
    return this.#mayEndUncertain(scope, growsBy, now) && this.#makeRoom('step', scope, growsBy, now)
  }

  #getPool({ state, uncertain }: MemoryEntry): EntryPool {
    if (state === 'in-flight') return this.#inFlight
    if (state === 'completed') return this.#completed
    return uncertain ? this.#uncertain : this.#certain
  }

  /**
   * Whether there would be room for it as an uncertain failure. Every claim in flight may become one, and none of these is
   * dropped before it expires.
   */
  #mayEndUncertain(scope: string, bytes: number, now: number): boolean {
    do {
      const inFlight = this.#inFlight.getScopeUsage(scope)
      const uncertain = this.#uncertain.getScopeUsage(scope)
      const free = this.#bounds.maxUncertainBytes - this.#inFlight.bytes - this.#uncertain.bytes - bytes
      const isFirst = inFlight.count + uncertain.count === 0 // It takes what the others had to leave.
      const held = inFlight.bytes + uncertain.bytes + bytes
      if (free >= 0 && (isFirst || this.#isWithinScopeShare(scope, held, free))) return true
    } while (this.#dropExpired(this.#uncertain, now) || this.#dropExpired(this.#inFlight, now))
    return false
  }

  /**
   * Drops expired records first, then, if evicting, completed ones: the scope's own before others, and only if that
   * helps.
   */
  #makeRoom(growth: Growth, scope: string, bytes: number, now: number): boolean {
    while (!this.#isRoom(growth, scope, bytes)) {
      if (this.#dropExpired(this.#inFlight, now) || this.#dropExpired(this.#completed, now)) continue
      if (!this.#bounds.evicts || !this.#isRoom(growth, scope, bytes, true)) return false
      if (!this.#dropIfAny(this.#completed.findOldest(scope))) this.#dropIfAny(this.#completed.findOldest())
      this.events.push({ type: 'evicted', state: 'completed' })
    }
    return true
  }

  #dropExpired(pool: EntryPool, now: number): boolean {
    return this.#dropIfAny(pool.findExpired(now))
  }

  #dropIfAny(entry: MemoryEntry | undefined): boolean {
    if (entry === undefined) return false
    this.remove(entry)
    return true
  }

  /**
   * `isAfterEviction`: whether there would be room then. Only the scope's own completed records go to keep it within its share, and anybody's
   * for the total size.
   */
  #isRoom(growth: Growth, scope: string, bytes: number, isAfterEviction = false): boolean {
    const { maxBytes, maxEntries } = this.#bounds
    const inFlight = this.#inFlight
    const completed = this.#completed
    const own = inFlight.getScopeUsage(scope)
    const ownCompleted = completed.getScopeUsage(scope)
    const evicted = isAfterEviction ? ownCompleted : NO_USAGE
    const isClaim = growth === 'claim'
    const growsBy = isClaim ? 0 : bytes
    const heldBytes = own.bytes + ownCompleted.bytes - evicted.bytes + growsBy
    const freeBytes = maxBytes - inFlight.bytes - completed.bytes + evicted.bytes - growsBy
    if (!this.#isWithinScopeShare(scope, heldBytes, freeBytes)) return false
    const heldCount = own.count + ownCompleted.count - evicted.count
    const freeCount = maxEntries - inFlight.count - completed.count + evicted.count
    if (isClaim && !this.#isWithinScopeShare(scope, heldCount, freeCount)) return false

    const kept = isAfterEviction ? NO_USAGE : completed
    if (growth !== 'answer' && bytes > 0 && inFlight.bytes + kept.bytes + bytes > maxBytes) return false
    return !isClaim || inFlight.count + kept.count < maxEntries
  }

  /**
   * Whether a scope that holds this much stays within its share. It may grow while what it holds is at most
   * `maxScopeShare : 1 - maxScopeShare` of what is free: by default, no more than is free. So a single scope gets half, n
   * greedy ones get 1/(n + 1) each, and as much is always left for a new one.
   */
  #isWithinScopeShare(scope: string, held: number, free: number): boolean {
    const { maxScopeShare } = this.#bounds
    if (scope === SINGLE_TENANT || maxScopeShare === 1) return true
    return held * (1 - maxScopeShare) <= free * maxScopeShare
  }

  /** Beyond their budget, the oldest of the scope that failed last are forgotten. */
  #dropCertain(scope: string, now: number): void {
    const { maxCertainBytes } = this.#bounds
    const pool = this.#certain
    while (true) {
      const isOver = pool.bytes > maxCertainBytes
      const own = pool.getScopeUsage(scope)
      if (!isOver && this.#isWithinScopeShare(scope, own.bytes, maxCertainBytes - pool.bytes)) return
      if (this.#dropExpired(pool, now)) continue
      // Another scope's only if there are so many scopes that there is not room for one each.
      if (own.count > 1) this.#dropIfAny(pool.findOldest(scope))
      else if (isOver && pool.count > 1) this.#dropIfAny(pool.findOldest())
      else return
    }
  }
}
