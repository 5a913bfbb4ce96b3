import type { machine } from '../../src/core/index.js'
import type { Bounds } from './bounds.js'
import { KeptEntries } from './entries.js'
import { Room } from './room.js'
import type { Entry } from './share.js'

/** Failures of one kind, with their own budget: beyond it, the oldest of the scope that failed last are dropped. */
export class Failures {
  readonly #room = new Room(() => new KeptEntries())
  readonly #bounds: Bounds
  readonly #maxBytes: number

  constructor(maxBytes: number, bounds: Bounds) {
    this.#maxBytes = maxBytes
    this.#bounds = bounds
  }

  find(key: string): Entry | undefined {
    return this.#room.find(key)
  }

  all(): Iterable<Entry> {
    return this.#room.all()
  }

  /** Returns how many were dropped before they expired. */
  put(key: string, scope: string, record: machine.StoredRecord, bytes: number, now: number): number {
    this.#room.put(key, scope, record, bytes, now, this.#room.find(key))
    let forgotten = 0
    while (this.#isOver(scope)) {
      if (this.#room.dropExpired(now)) continue
      if (!this.#forgetOne(scope)) break
      forgotten++
    }
    return forgotten
  }

  drop(entry: Entry): void {
    this.#room.drop(entry)
  }

  clear(): void {
    this.#room.clear()
  }

  #isOver(scope: string): boolean {
    return this.#room.bytes > this.#maxBytes || !this.#bounds.isFair(scope, this.#room.heldBy(scope), this.#room)
  }

  /** Drops another scope's failure only if there are so many scopes that there is not room for one each. */
  #forgetOne(scope: string): boolean {
    if (this.#room.heldBy(scope).count > 1) return this.#room.dropOldestOf(scope)
    return this.#room.bytes > this.#maxBytes && this.#room.count > 1 && this.#room.dropOldest()
  }
}
