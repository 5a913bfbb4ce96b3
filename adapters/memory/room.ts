import { ExpiryQueue, leaveExpiryQueue, type MemoryEntry, NO_USAGE, ScopeEntries, type Usage } from './entry.js'

/**
 * Records of one kind: their total size, the share of each scope, and the order in which they may be dropped. Finding the
 * next one takes no scan, however many there are.
 */
export class EntryPool implements Usage {
  count = 0
  bytes = 0
  /** One for each distinct retention: a handful. */
  #queues: ExpiryQueue[] = []
  readonly #shares = new Map<string, ScopeEntries>()
  /** The last share that became empty, kept for reuse: a scope with one request at a time needs it again. */
  #emptied: ScopeEntries | undefined

  getScopeUsage(scope: string): Usage {
    return this.#shares.get(scope) ?? NO_USAGE
  }

  add(entry: MemoryEntry, scope: string, now: number): void {
    this.count++
    this.bytes += entry.bytes
    this.#ensureExpiryQueue(entry.expiresAt - now).add(entry)
    const share = this.#shares.get(scope) ?? new ScopeEntries(scope)
    share.add(entry)
    if (share === this.#emptied) this.#emptied = undefined
    else if (share.count === 1) this.#shares.set(scope, share)
  }

  remove(entry: MemoryEntry): void {
    const share = entry.share as ScopeEntries
    this.count--
    this.bytes -= entry.bytes
    leaveExpiryQueue(entry)
    share.remove(entry)
    if (share.count > 0 || share === this.#emptied) return
    if (this.#emptied !== undefined) this.#shares.delete(this.#emptied.scope)
    this.#emptied = share
  }

  /** A record was replaced by one that expires at the same time: it keeps its place, and its size has changed. */
  resizeEntry(entry: MemoryEntry, growsBy: number): void {
    for (const holding of [this, entry.share as ScopeEntries]) holding.bytes += growsBy
  }

  findExpired(now: number): MemoryEntry | undefined {
    for (const { first } of this.#queues) if (first !== null && now >= first.expiresAt) return first
    return undefined
  }

  /** The one that was written first, of this scope or of all. */
  findOldest(scope?: string): MemoryEntry | undefined {
    if (scope !== undefined) return this.#shares.get(scope)?.oldest ?? undefined
    let oldest: MemoryEntry | undefined
    let writtenAt = Number.POSITIVE_INFINITY
    for (const { first, keptMs } of this.#queues) {
      if (first === null || first.expiresAt - keptMs >= writtenAt) continue
      oldest = first
      writtenAt = first.expiresAt - keptMs
    }
    return oldest
  }

  clear(): void {
    this.count = this.bytes = 0
    this.#queues = []
    this.#shares.clear()
    this.#emptied = undefined
  }

  #ensureExpiryQueue(keptForMs: number): ExpiryQueue {
    const keptMs = Math.round(keptForMs) // A clock may return fractions.
    for (const queue of this.#queues) if (Object.is(queue.keptMs, keptMs)) return queue
    const queue = new ExpiryQueue(keptMs)
    this.#queues = [...this.#queues.filter(({ first }) => first !== null), queue]
    return queue
  }
}
