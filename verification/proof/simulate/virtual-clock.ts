/** Something that will happen to its owner; `act` is null once it was called off. */
export interface Due<Owner> {
  readonly at: number
  readonly order: number
  readonly owner: Owner | null
  readonly isTimer: boolean
  act: (() => void) | null
}

/** Time that passes from one happening to the next. What is due at the same time happens in the order of its planning. */
export class VirtualClock<Owner> {
  now = 1
  #planned = 0
  /** A binary heap: the next one first. */
  readonly #heap: Due<Owner>[] = []

  plan(at: number, act: () => void, owner: Owner | null = null, isTimer = false): Due<Owner> {
    const due = { at: Math.max(at, this.now), order: this.#planned++, owner, isTimer, act }
    this.#heap.push(due)
    this.#rise(this.#heap.length - 1)
    return due
  }

  /** Moves on to the next happening, and takes it out. */
  next(): Due<Owner> | undefined {
    const heap = this.#heap
    while (heap.length > 0) {
      const first = heap[0] as Due<Owner>
      const last = heap.pop() as Due<Owner>
      if (heap.length > 0) {
        heap[0] = last
        this.#sink()
      }
      if (first.act === null) continue
      this.now = first.at
      return first
    }
    return undefined
  }

  #rise(from: number): void {
    const heap = this.#heap
    const due = heap[from] as Due<Owner>
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = heap[above] as Due<Owner>
      if (!isBefore(due, parent)) break
      heap[place] = parent
      place = above
    }
    heap[place] = due
  }

  #sink(): void {
    const heap = this.#heap
    const due = heap[0] as Due<Owner>
    let place = 0
    while (true) {
      let below = 2 * place + 1
      if (below >= heap.length) break
      const other = heap[below + 1]
      if (other !== undefined && isBefore(other, heap[below] as Due<Owner>)) below++
      const child = heap[below] as Due<Owner>
      if (!isBefore(child, due)) break
      heap[place] = child
      place = below
    }
    heap[place] = due
  }
}

function isBefore(one: Due<unknown>, other: Due<unknown>): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}
