import { LRUCache } from 'lru-cache'
import { type machine, SINGLE_TENANT } from '../../src/core/index.js'
import { MemoryEntry, type Usage } from './entry.js'
import { TemplateCache } from './forms.js'
import { computeSize, type PackedRecord, packRecord } from './packed.js'
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

/** What room is needed for: a claim, which is one more record, or an answer or a step's result, which makes one grow. */
interface RoomRequest {
  readonly scope: string
  readonly isClaim: boolean
  /** What must fit into the store: nothing of an answer, since the claim has room. */
  readonly bytes: number
  readonly growsBy: number
}

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
  /** Without bounds of its own, and in no order: the rooms know which record may go. */
  readonly #index = new LRUCache<string, MemoryEntry>({ maxSize: Number.MAX_SAFE_INTEGER })
  readonly #forms = new TemplateCache()
  readonly #bounds: Bounds

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  find(key: string): MemoryEntry | undefined {
    return this.#index.peek(key, NO_OPTIONS)
  }

  /** Those in flight and completed. */
  getUsage(): Usage {
    return sum(this.#inFlight, this.#completed)
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

  pack(record: StoredRecord): PackedRecord {
    return packRecord(record, this.#forms)
  }

  /** Replaces the previous record of the key, if any. */
  write(
    key: string,
    scope: string,
    record: StoredRecord,
    as: PackedRecord,
    before: MemoryEntry | undefined,
    now: number,
  ): void {
    const isThere = before !== undefined && before.share !== null
    const entry = isThere ? before : new MemoryEntry(key, as)
    const owner = before?.share?.scope ?? scope
    if (isThere) this.#getPool(entry).remove(entry)
    else this.#index.set(key, entry, SIZE)
    entry.setRecord(as, record)
    const room = this.#getPool(entry)
    room.add(entry, owner, now)
    if (room === this.#certain) this.#dropCertain(owner, now)
  }

  /** Drops the answer; the record keeps its place. */
  replaceInPlace(entry: MemoryEntry, record: StoredRecord): void {
    const bytes = entry.bytes
    entry.setRecord(this.pack(record), record)
    this.#completed.resizeEntry(entry, entry.bytes - bytes)
  }

  remove(entry: MemoryEntry): void {
    this.#index.delete(entry.key)
    this.#getPool(entry).remove(entry)
  }

  clear(): void {
    for (const room of [this.#inFlight, this.#completed, this.#uncertain, this.#certain]) room.clear()
    this.#index.clear()
    this.#forms.clear()
  }

  /**
   * Makes room for a new claim, and for its end: where the outcome will be unknown, it is kept until its retention ends.
   * Returns how many records were evicted; `null` if there is no room (then nothing was evicted).
   */
  makeRoomForClaim(
    key: string,
    scope: string,
    as: PackedRecord,
    before: MemoryEntry | undefined,
    now: number,
  ): number | null {
    const state = before?.state
    const claimBytes = computeSize(key, as)
    const isCounted = state === 'in-flight' || before?.uncertain === true
    if (!isCounted && !this.#mayEndUncertain(scope, claimBytes, now)) return null
    if (state === 'in-flight' || state === 'completed') return 0
    // One that the marks of its steps have made larger than the store is claimed again where nothing else is.
    const bytes = before === undefined ? claimBytes : Math.min(claimBytes, this.#bounds.maxBytes)
    return this.#makeRoom({ scope, isClaim: true, bytes, growsBy: 0 }, now)
  }

  /**
   * The same for an answer that makes a record of the scope grow. Only the scope's share matters, since its claim has
   * room.
   */
  makeRoomForAnswer(
    key: string,
    scope: string,
    as: PackedRecord,
    before: MemoryEntry | undefined,
    now: number,
  ): number | null {
    const isClaimed = before !== undefined && before.state !== 'failed'
    const growsBy = computeSize(key, as) - (isClaimed ? before.bytes : 0)
    return this.#makeRoom({ scope, isClaim: false, bytes: 0, growsBy }, now)
  }

  /** The same for a step's result, which a failure that leaves the outcome unknown keeps, and the next attempt claims. */
  makeRoomForStep(
    key: string,
    scope: string,
    as: PackedRecord,
    before: MemoryEntry | undefined,
    now: number,
  ): number | null {
    const growsBy = computeSize(key, as) - (before?.bytes ?? 0)
    if (!this.#mayEndUncertain(scope, growsBy, now)) return null
    return this.#makeRoom({ scope, isClaim: false, bytes: growsBy, growsBy }, now)
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
    const { maxUncertainBytes } = this.#bounds
    while (true) {
      const total = sum(this.#inFlight, this.#uncertain)
      const own = sum(this.#inFlight.getScopeUsage(scope), this.#uncertain.getScopeUsage(scope))
      const free = maxUncertainBytes - total.bytes - bytes
      const isFirst = own.count === 0 // It takes what the others had to leave.
      if (free >= 0 && (isFirst || this.#isWithinScopeShare(scope, own.bytes + bytes, free))) return true
      if (!this.#dropExpired(this.#uncertain, now) && !this.#dropExpired(this.#inFlight, now)) return false
    }
  }

  /**
   * Drops expired records first, then, if evicting, completed ones: the scope's own before others, and only if that
   * helps.
   */
  #makeRoom(need: RoomRequest, now: number): number | null {
    while (!this.#isRoom(need)) {
      if (this.#dropExpired(this.#inFlight, now) || this.#dropExpired(this.#completed, now)) continue
      return this.#bounds.evicts && this.#hasRoomAfterEviction(need) ? this.#evict(need) : null
    }
    return 0
  }

  #dropExpired(room: EntryPool, now: number): boolean {
    return this.#dropIfAny(room.findExpired(now))
  }

  #dropIfAny(entry: MemoryEntry | undefined): boolean {
    if (entry === undefined) return false
    this.remove(entry)
    return true
  }

  #evict(need: RoomRequest): number {
    let evictions = 0
    for (; !this.#isRoom(need); evictions++) {
      if (!this.#dropIfAny(this.#completed.findOldest(need.scope))) this.#dropIfAny(this.#completed.findOldest())
    }
    return evictions
  }

  #isRoom(need: RoomRequest): boolean {
    const own = sum(this.#inFlight.getScopeUsage(need.scope), this.#completed.getScopeUsage(need.scope))
    const total = this.getUsage()
    return this.#isFair(need, own, total) && this.#fits(need, total)
  }

  /**
   * Whether there would be room after eviction: the scope's own records to keep within its share, anybody's for total
   * size.
   */
  #hasRoomAfterEviction(need: RoomRequest): boolean {
    const { count, bytes } = this.#completed.getScopeUsage(need.scope)
    const total = sum(this.getUsage(), { count: -count, bytes: -bytes })
    return this.#isFair(need, this.#inFlight.getScopeUsage(need.scope), total) && this.#fits(need, this.#inFlight)
  }

  #isFair({ scope, isClaim, growsBy }: RoomRequest, own: Usage, total: Usage): boolean {
    const { maxBytes, maxEntries } = this.#bounds
    return (
      this.#isWithinScopeShare(scope, own.bytes + growsBy, maxBytes - total.bytes - growsBy) &&
      (!isClaim || this.#isWithinScopeShare(scope, own.count, maxEntries - total.count))
    )
  }

  #fits({ isClaim, bytes }: RoomRequest, total: Usage): boolean {
    const { maxBytes, maxEntries } = this.#bounds
    return (bytes <= 0 || total.bytes + bytes <= maxBytes) && (!isClaim || total.count < maxEntries)
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
    const room = this.#certain
    while (true) {
      const isOver = room.bytes > maxCertainBytes
      const own = room.getScopeUsage(scope)
      if (!isOver && this.#isWithinScopeShare(scope, own.bytes, maxCertainBytes - room.bytes)) return
      if (this.#dropExpired(room, now)) continue
      // Another scope's only if there are so many scopes that there is not room for one each.
      if (own.count > 1) this.#dropIfAny(room.findOldest(scope))
      else if (isOver && room.count > 1) this.#dropIfAny(room.findOldest())
      else return
    }
  }
}

function sum(a: Usage, b: Usage): Usage {
  return { count: a.count + b.count, bytes: a.bytes + b.bytes }
}
