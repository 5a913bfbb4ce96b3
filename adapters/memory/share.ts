import type { machine } from '../../src/core/index.js'

/** A record in a room: its size, and the share that it belongs to. */
export class Entry {
  readonly key: string
  /** Replaced only when its answer is dropped: it keeps its place. */
  record: machine.StoredRecord
  bytes: number
  readonly share: Share
  /** Its neighbours in its share, by age. */
  older: Entry | null = null
  newer: Entry | null = null
  /** Its neighbours among records with the same retention, if a list keeps them. */
  writtenBefore: Entry | null = null
  writtenAfter: Entry | null = null

  constructor(key: string, record: machine.StoredRecord, bytes: number, share: Share) {
    this.key = key
    this.record = record
    this.bytes = bytes
    this.share = share
  }
}

export interface Holding {
  readonly count: number
  readonly bytes: number
}

/** The records of one scope in a room, in the order in which they were written. */
export class Share implements Holding {
  readonly scope: string
  count = 0
  bytes = 0
  /** The first that may be dropped. */
  oldest: Entry | null = null
  #newest: Entry | null = null

  constructor(scope: string) {
    this.scope = scope
  }

  add(entry: Entry): void {
    this.count++
    this.bytes += entry.bytes
    entry.older = this.#newest
    if (this.#newest === null) this.oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
  }

  remove(entry: Entry): void {
    this.count--
    this.bytes -= entry.bytes
    if (entry.older === null) this.oldest = entry.newer
    else entry.older.newer = entry.newer
    if (entry.newer === null) this.#newest = entry.older
    else entry.newer.older = entry.older
    entry.older = entry.newer = null
  }
}
