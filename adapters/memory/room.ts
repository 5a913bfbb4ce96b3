import type { machine } from '../../src/core/index.js'
import type { Entries } from './entries.js'
import { Entry, type Holding, Share } from './share.js'
import { Shelves } from './shelves.js'

const NOTHING: Holding = { count: 0, bytes: 0 }

/** Records of one kind: their total size, the share of each scope, and the order in which they may be dropped. */
export class Room implements Holding {
  count = 0
  bytes = 0
  #shelves: Shelves
  readonly #shares = new Map<string, Share>()
  /** The last share that became empty, kept for reuse: a scope with one request at a time needs it again. */
  #emptied: Share | undefined
  readonly #empty: () => Entries

  constructor(empty: () => Entries) {
    this.#empty = empty
    this.#shelves = new Shelves(empty)
  }

  heldBy(scope: string): Holding {
    return this.#shares.get(scope) ?? NOTHING
  }

  find(key: string): Entry | undefined {
    return this.count === 0 ? undefined : this.#shelves.find(key)
  }

  *all(): Generator<Entry> {
    for (const { oldest } of this.#shares.values())
      for (let entry = oldest; entry !== null; entry = entry.newer) yield entry
  }

  /** `before`: the previous record of the key in this room, if any. */
  put(
    key: string,
    scope: string,
    record: machine.StoredRecord,
    bytes: number,
    now: number,
    before: Entry | undefined,
  ): void {
    const share = this.#shares.get(scope) ?? new Share(scope)
    const entry = new Entry(key, record, bytes, share)
    this.#shelves.put(entry, now, before)
    if (before !== undefined) this.#forget(before)
    this.count++
    this.bytes += bytes
    share.add(entry)
    if (share === this.#emptied) this.#emptied = undefined
    else if (share.count === 1) this.#shares.set(scope, share)
  }

  /** Replaces a record by a smaller one that expires at the same time. */
  shrink(entry: Entry, record: machine.StoredRecord, bytes: number): void {
    for (const holding of [this, entry.share]) holding.bytes += bytes - entry.bytes
    entry.record = record
    entry.bytes = bytes
  }

  clear(): void {
    this.count = this.bytes = 0
    this.#shelves = new Shelves(this.#empty)
    this.#shares.clear()
    this.#emptied = undefined
  }

  /** Drops one expired record; `false` if there is none. */
  dropExpired(now: number): boolean {
    return this.#dropIf(this.#shelves.expired(now))
  }

  /** Drops the oldest record of this scope; `false` if it has none. */
  dropOldestOf(scope: string): boolean {
    return this.#dropIf(this.#shares.get(scope)?.oldest)
  }

  /** Drops the oldest record of all; `false` if there is none. */
  dropOldest(): boolean {
    return this.#dropIf(this.#shelves.oldest())
  }

  /** Returns whether it was still there. */
  drop(entry: Entry): boolean {
    const wasThere = this.#shelves.delete(entry)
    if (wasThere) this.#forget(entry)
    return wasThere
  }

  #dropIf(entry: Entry | null | undefined): boolean {
    return entry !== null && entry !== undefined && this.drop(entry)
  }

  #forget(entry: Entry): void {
    const { share, bytes } = entry
    this.count--
    this.bytes -= bytes
    share.remove(entry)
    if (share.count > 0 || share === this.#emptied) return
    if (this.#emptied !== undefined) this.#shares.delete(this.#emptied.scope)
    this.#emptied = share
  }
}
