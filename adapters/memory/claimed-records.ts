import type { machine } from '../../src/core/index.js'
import type { Bounds } from './bounds.js'
import { KeptEntries, PassingEntries } from './entries.js'
import { Room } from './room.js'
import type { Entry, Holding } from './share.js'

/** What room is needed for: a claim of this size, or an answer that makes a record grow. */
interface Need {
  readonly scope: string
  readonly claimBytes: number
  readonly growsBy: number
}

/** Records in flight and completed records, within their bounds. */
export class ClaimedRecords {
  readonly #inFlight = new Room(() => new PassingEntries())
  readonly #completed = new Room(() => new KeptEntries())
  readonly #bounds: Bounds
  readonly #evicts: boolean

  constructor(bounds: Bounds, evicts: boolean) {
    this.#bounds = bounds
    this.#evicts = evicts
  }

  total(): Holding {
    return sum(this.#inFlight, this.#completed)
  }

  find(key: string): Entry | undefined {
    return this.#inFlight.find(key) ?? this.#completed.find(key)
  }

  inFlight(): Iterable<Entry> {
    return this.#inFlight.all()
  }

  completed(): Iterable<Entry> {
    return this.#completed.all()
  }

  /** Replaces a completed record by one without its answer. */
  shrink(entry: Entry, record: machine.StoredRecord, bytes: number): void {
    this.#completed.shrink(entry, record, bytes)
  }

  /** `before`: the previous record of the key, in flight or completed, if any. */
  put(
    key: string,
    scope: string,
    record: machine.StoredRecord,
    bytes: number,
    now: number,
    before: Entry | undefined,
  ): void {
    const room = this.#roomOf(record)
    const isMoved = before !== undefined && this.#roomOf(before.record) !== room
    room.put(key, scope, record, bytes, now, isMoved ? undefined : before)
    if (isMoved) this.drop(before)
  }

  /** Does nothing if it was dropped already, to make room. */
  drop(entry: Entry): void {
    this.#roomOf(entry.record).drop(entry)
  }

  #roomOf({ state }: machine.StoredRecord): Room {
    return state === 'completed' ? this.#completed : this.#inFlight
  }

  clear(): void {
    this.#inFlight.clear()
    this.#completed.clear()
  }

  /**
   * Makes room for one more claim. Returns how many records were evicted; `null` if there is no room (then nothing was
   * evicted).
   */
  makeRoomForClaim(scope: string, claimBytes: number, now: number): number | null {
    return this.#makeRoom({ scope, claimBytes, growsBy: 0 }, now)
  }

  /**
   * The same for an answer that makes a record of the scope grow. Only the scope's share matters, since its claim has
   * room.
   */
  makeRoomForAnswer(scope: string, growsBy: number, now: number): number | null {
    return this.#makeRoom({ scope, claimBytes: 0, growsBy }, now)
  }

  /**
   * Drops expired records first, then, if evicting, completed ones: the scope's own before others, and only if that
   * helps.
   */
  #makeRoom(need: Need, now: number): number | null {
    while (!this.#isRoom(need)) {
      if (this.#inFlight.dropExpired(now) || this.#completed.dropExpired(now)) continue
      return this.#evicts && this.#wouldBeRoom(need) ? this.#evict(need) : null
    }
    return 0
  }

  #evict(need: Need): number {
    let evictions = 0
    for (; !this.#isRoom(need); evictions++) {
      if (!this.#completed.dropOldestOf(need.scope)) this.#completed.dropOldest()
    }
    return evictions
  }

  #isRoom(need: Need): boolean {
    const own = sum(this.#inFlight.heldBy(need.scope), this.#completed.heldBy(need.scope))
    const total = this.total()
    return this.#isFair(need, own, total) && this.#fits(need, total)
  }

  /**
   * Whether there would be room after eviction: the scope's own records to keep within its share, anybody's for total
   * size.
   */
  #wouldBeRoom(need: Need): boolean {
    const { count, bytes } = this.#completed.heldBy(need.scope)
    const total = sum(this.total(), { count: -count, bytes: -bytes })
    return this.#isFair(need, this.#inFlight.heldBy(need.scope), total) && this.#fits(need, this.#inFlight)
  }

  #isFair({ scope, growsBy }: Need, own: Holding, total: Holding): boolean {
    const growth = { count: 0, bytes: growsBy }
    return this.#bounds.isFair(scope, sum(own, growth), sum(total, growth))
  }

  #fits({ claimBytes }: Need, total: Holding): boolean {
    return claimBytes === 0 || this.#bounds.fits(total, claimBytes)
  }
}

function sum(a: Holding, b: Holding): Holding {
  return { count: a.count + b.count, bytes: a.bytes + b.bytes }
}
