import { LRUCache } from 'lru-cache'
import type { Entry } from './share.js'

/** Records with the same retention, in the order in which they were written: the oldest is the first to expire. */
export interface Entries {
  readonly size: number
  find(key: string): Entry | undefined
  /** Adds it as the newest. `isNew`: there is no entry of this key yet. */
  put(entry: Entry, isNew: boolean): void
  /** Returns whether it was here. */
  delete(entry: Entry): boolean
  oldest(): Entry | undefined
}

/** Long-lived records, in an lru-cache without bounds: the store drops records itself, since it knows which may go. */
export class KeptEntries implements Entries {
  readonly #entries = new LRUCache<string, Entry>({ maxSize: Number.MAX_SAFE_INTEGER })

  get size(): number {
    return this.#entries.size
  }

  find(key: string): Entry | undefined {
    return this.#entries.peek(key)
  }

  put(entry: Entry): void {
    this.#entries.set(entry.key, entry, ONE)
  }

  delete(entry: Entry): boolean {
    return this.#entries.delete(entry.key)
  }

  oldest(): Entry | undefined {
    return this.#entries.rvalues().next().value ?? undefined
  }
}

const ONE = { size: 1 }

/** Short-lived records, for example those in flight: a linked list, and a map into it. */
export class PassingEntries implements Entries {
  readonly #byKey = new Map<string, Entry>()
  #oldest: Entry | null = null
  #newest: Entry | null = null

  get size(): number {
    return this.#byKey.size
  }

  find(key: string): Entry | undefined {
    return this.#byKey.get(key)
  }

  put(entry: Entry, isNew: boolean): void {
    if (!isNew) this.#unlink(this.#byKey.get(entry.key))
    this.#byKey.set(entry.key, entry)
    entry.writtenBefore = this.#newest
    if (this.#newest === null) this.#oldest = entry
    else this.#newest.writtenAfter = entry
    this.#newest = entry
  }

  delete(entry: Entry): boolean {
    const wasHere = this.#byKey.delete(entry.key)
    if (wasHere) this.#unlink(entry)
    return wasHere
  }

  oldest(): Entry | undefined {
    return this.#oldest ?? undefined
  }

  #unlink(entry: Entry | undefined): void {
    if (entry === undefined) return
    const { writtenBefore, writtenAfter } = entry
    if (writtenBefore === null) this.#oldest = writtenAfter
    else writtenBefore.writtenAfter = writtenAfter
    if (writtenAfter === null) this.#newest = writtenBefore
    else writtenAfter.writtenBefore = writtenBefore
    entry.writtenBefore = null
    entry.writtenAfter = null
  }
}
