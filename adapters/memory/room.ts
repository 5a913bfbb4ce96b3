import { type Entry, type Holding, leaveShelf, Share, Shelf } from './entry.js'

const NOTHING: Holding = { count: 0, bytes: 0 }

/**
 * Records of one kind: their total size, the share of each scope, and the order in which they may be dropped. Finding the
 * next one takes no scan, however many there are.
 */
export class Room implements Holding {
  count = 0
  bytes = 0
  /** One for each distinct retention: a handful. */
  #shelves: Shelf[] = []
  readonly #shares = new Map<string, Share>()
  /** The last share that became empty, kept for reuse: a scope with one request at a time needs it again. */
  #emptied: Share | undefined

  heldBy(scope: string): Holding {
    return this.#shares.get(scope) ?? NOTHING
  }

  add(entry: Entry, scope: string, now: number): void {
    this.count++
    this.bytes += entry.bytes
    this.#shelfFor(entry.expiresAt - now).add(entry)
    const share = this.#shares.get(scope) ?? new Share(scope)
    share.add(entry)
    if (share === this.#emptied) this.#emptied = undefined
    else if (share.count === 1) this.#shares.set(scope, share)
  }

  remove(entry: Entry): void {
    const share = entry.share as Share
    this.count--
    this.bytes -= entry.bytes
    leaveShelf(entry)
    share.remove(entry)
    if (share.count > 0 || share === this.#emptied) return
    if (this.#emptied !== undefined) this.#shares.delete(this.#emptied.scope)
    this.#emptied = share
  }

  /** A record was replaced by one that expires at the same time: it keeps its place, and its size has changed. */
  resize(entry: Entry, growsBy: number): void {
    for (const holding of [this, entry.share as Share]) holding.bytes += growsBy
  }

  expired(now: number): Entry | undefined {
    for (const { first } of this.#shelves) if (first !== null && now >= first.expiresAt) return first
    return undefined
  }

  /** The one that was written first, of this scope or of all. */
  oldest(scope?: string): Entry | undefined {
    if (scope !== undefined) return this.#shares.get(scope)?.oldest ?? undefined
    let oldest: Entry | undefined
    let writtenAt = Number.POSITIVE_INFINITY
    for (const { first, keptMs } of this.#shelves) {
      if (first === null || first.expiresAt - keptMs >= writtenAt) continue
      oldest = first
      writtenAt = first.expiresAt - keptMs
    }
    return oldest
  }

  clear(): void {
    this.count = this.bytes = 0
    this.#shelves = []
    this.#shares.clear()
    this.#emptied = undefined
  }

  #shelfFor(keptForMs: number): Shelf {
    const keptMs = Math.round(keptForMs) // A clock may return fractions.
    for (const shelf of this.#shelves) if (Object.is(shelf.keptMs, keptMs)) return shelf
    const shelf = new Shelf(keptMs)
    this.#shelves = [...this.#shelves.filter(({ first }) => first !== null), shelf]
    return shelf
  }
}
