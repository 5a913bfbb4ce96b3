import type { Entries } from './entries.js'
import type { Entry } from './share.js'

/**
 * Records in the order in which they may be dropped. Each shelf holds records with the same retention, oldest first, so
 * its first record is the first to expire. Finding one takes no scan, however many records there are.
 */
export class Shelves {
  /** One for each distinct retention: a handful. */
  #shelves: Shelf[] = []
  readonly #empty: () => Entries

  constructor(empty: () => Entries) {
    this.#empty = empty
  }

  find(key: string): Entry | undefined {
    for (const { entries } of this.#shelves) {
      const entry = entries.find(key)
      if (entry !== undefined) return entry
    }
    return undefined
  }

  /** `before`: the record of this key on one of the shelves, if any. */
  put(entry: Entry, now: number, before: Entry | undefined): void {
    const shelf = this.#shelfFor(entry, now)
    shelf.entries.put(entry, before === undefined) // First, so that if it throws the previous record is still there.
    if (before === undefined) return
    for (const other of this.#shelves) if (other !== shelf) other.entries.delete(before)
  }

  /** Returns whether a shelf had it. */
  delete(entry: Entry): boolean {
    for (const { entries } of this.#shelves) if (entries.delete(entry)) return true
    return false
  }

  /** An expired record, if there is one. */
  expired(now: number): Entry | undefined {
    for (const { entries } of this.#shelves) {
      const oldest = entries.oldest()
      if (oldest !== undefined && now >= oldest.record.expiresAt) return oldest
    }
    return undefined
  }

  /** The oldest record. */
  oldest(): Entry | undefined {
    let first: Entry | undefined
    let firstWrittenAt = Number.POSITIVE_INFINITY
    for (const { entries, keptMs } of this.#shelves) {
      const oldest = entries.oldest()
      if (oldest === undefined || oldest.record.expiresAt - keptMs >= firstWrittenAt) continue
      first = oldest
      firstWrittenAt = oldest.record.expiresAt - keptMs
    }
    return first
  }

  #shelfFor({ record }: Entry, now: number): Shelf {
    const keptMs = Math.round(record.expiresAt - now) // A clock may return fractions.
    for (const shelf of this.#shelves) if (Object.is(shelf.keptMs, keptMs)) return shelf
    const shelf = { keptMs, entries: this.#empty() }
    this.#shelves = [...this.#shelves.filter(({ entries }) => entries.size > 0), shelf]
    return shelf
  }
}

interface Shelf {
  readonly keptMs: number
  readonly entries: Entries
}
