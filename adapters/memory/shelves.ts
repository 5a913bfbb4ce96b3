import { LRUCache } from 'lru-cache'
import type { machine } from '../../src/core/index.js'

type StoredRecord = machine.StoredRecord

/**
 * Records in the order in which they may go. A shelf holds those that are kept equally long, completed ones apart, the
 * one that was written the longest ago first: it is the first to expire, and of completed ones the first to evict. So
 * what may go is found without looking at the rest, however many there are.
 */
export class Shelves {
  readonly #sizeOf: (record: StoredRecord, key: string) => number
  /** As many as there are different retentions, twice: a handful. */
  #shelves: Shelf[] = []

  constructor(sizeOf: (record: StoredRecord, key: string) => number) {
    this.#sizeOf = sizeOf
  }

  find(key: string): StoredRecord | undefined {
    for (const { records } of this.#shelves) {
      const record = records.peek(key)
      if (record !== undefined) return record
    }
    return undefined
  }

  put(key: string, record: StoredRecord, now: number): void {
    const shelf = this.#shelfFor(record, now)
    shelf.records.set(key, record) // First: should it throw, the record that stood is still there.
    for (const other of this.#shelves) if (other !== shelf) other.records.delete(key)
  }

  delete(key: string): void {
    for (const { records } of this.#shelves) records.delete(key)
  }

  clear(): void {
    this.#shelves = []
  }

  /** Number and bytes of all records, or of those in flight or uncertain, which no eviction touches. */
  total(which: 'all' | 'uncompleted' = 'all'): { readonly count: number; readonly bytes: number } {
    let count = 0
    let bytes = 0
    for (const { completed, records } of this.#shelves) {
      if (completed && which === 'uncompleted') continue
      count += records.size
      bytes += records.calculatedSize
    }
    return { count, bytes }
  }

  /** Drops one record that has expired; `false`: there is none. */
  dropExpired(now: number): boolean {
    for (const { records } of this.#shelves) {
      const oldest = oldestOf(records)
      if (oldest === undefined || now < oldest.expiresAt) continue
      records.pop()
      return true
    }
    return false
  }

  /** Drops the completed record that was written the longest ago; `false`: there is none. */
  dropOldestCompleted(): boolean {
    let first: Shelf | undefined
    let firstWrittenAt = Number.POSITIVE_INFINITY
    for (const shelf of this.#shelves) {
      const oldest = shelf.completed ? oldestOf(shelf.records) : undefined
      if (oldest === undefined || oldest.expiresAt - shelf.keptMs >= firstWrittenAt) continue
      first = shelf
      firstWrittenAt = oldest.expiresAt - shelf.keptMs
    }
    return first?.records.pop() !== undefined
  }

  #shelfFor(record: StoredRecord, now: number): Shelf {
    const completed = record.state === 'completed'
    const keptMs = Math.round(record.expiresAt - now) // A clock may tell fractions.
    for (const shelf of this.#shelves)
      if (shelf.completed === completed && Object.is(shelf.keptMs, keptMs)) return shelf
    const shelf = { completed, keptMs, records: unboundedRecords(this.#sizeOf) }
    this.#shelves = [...this.#shelves.filter(({ records }) => records.size > 0), shelf]
    return shelf
  }
}

interface Shelf {
  readonly completed: boolean
  readonly keptMs: number
  readonly records: LRUCache<string, StoredRecord>
}

/** The store keeps its bounds by itself, since it knows what may go: lru-cache counts and orders, and drops nothing. */
function unboundedRecords(sizeOf: (record: StoredRecord, key: string) => number): LRUCache<string, StoredRecord> {
  return new LRUCache({ maxSize: Number.MAX_SAFE_INTEGER, sizeCalculation: sizeOf })
}

function oldestOf(records: LRUCache<string, StoredRecord>): StoredRecord | undefined {
  return records.rvalues().next().value ?? undefined
}
