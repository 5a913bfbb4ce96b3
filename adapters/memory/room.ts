import type { machine } from '../../src/core/index.js'
import type { Entries } from './entries.js'
import { Entry, type Holding, Share } from './share.js'
import { Shelves } from './shelves.js'

const NOTHING: Holding = { count: 0, bytes: 0 }

/** Records of one kind: what they take together, what each scope takes of it, and in which order they may go. */
export class Room implements Holding {
  count = 0
  bytes = 0
  #shelves: Shelves
  readonly #shares = new Map<string, Share>()
  /** The last share that became empty: it stays for as long, since a scope whose requests come one by one needs it again. */
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

  put(key: string, scope: string, record: machine.StoredRecord, bytes: number, now: number): void {
    const before = this.find(key)
    const share = this.#shares.get(scope) ?? new Share(scope)
    const entry = new Entry(key, record, bytes, share)
    this.#shelves.put(entry, now, before === undefined)
    if (before !== undefined) this.#forget(before)
    this.count++
    this.bytes += bytes
    share.add(entry)
    if (share === this.#emptied) this.#emptied = undefined
    else if (share.count === 1) this.#shares.set(scope, share)
  }

  delete(key: string): void {
    const entry = this.find(key)
    if (entry !== undefined) this.#drop(entry)
  }

  clear(): void {
    this.count = this.bytes = 0
    this.#shelves = new Shelves(this.#empty)
    this.#shares.clear()
    this.#emptied = undefined
  }

  /** Drops a record that has expired; `false`: there is none. */
  dropExpired(now: number): boolean {
    return this.#drop(this.#shelves.expired(now))
  }

  /** Drops what this scope wrote the longest ago; `false`: there is nothing. */
  dropOldestOf(scope: string): boolean {
    return this.#drop(this.#shares.get(scope)?.oldest)
  }

  /** Drops what anybody wrote the longest ago; `false`: there is nothing. */
  dropOldest(): boolean {
    return this.#drop(this.#shelves.oldest())
  }

  #drop(entry: Entry | null | undefined): boolean {
    if (entry === null || entry === undefined) return false
    this.#shelves.delete(entry.key)
    this.#forget(entry)
    return true
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
