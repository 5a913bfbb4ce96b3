export abstract class Deadline {
  /** On the monotonic clock; Infinity: it is in no queue. */
  dueAt = Number.POSITIVE_INFINITY
  earlier: Deadline | null = null
  later: Deadline | null = null

  /** Called each time that it is due; it is then in no queue. */
  abstract onDue(now: number): void
}

/**
 * The deadlines of an engine, with one timer: a timer for each would cost several µs per request. The timer keeps no
 * process alive. After all deadlines are cancelled it still fires once, because the next request would set it again;
 * `rest` cancels it.
 */
export class Deadlines {
  readonly #queues: DeadlineQueue[] = []
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires; Infinity: there is none. It may fire for nothing, if the deadline was postponed. */
  #firesAt = Number.POSITIVE_INFINITY

  /** A queue for deadlines that are about equally far away. */
  queue(): DeadlineQueue {
    const queue = new DeadlineQueue((dueAt) => {
      if (dueAt < this.#firesAt) this.#fireAt(dueAt)
    })
    this.#queues.push(queue)
    return queue
  }

  /** Cancels the timer if nothing is due any more. */
  rest(): void {
    if (this.#next() !== undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#firesAt = Number.POSITIVE_INFINITY
  }

  #fireAt(dueAt: number): void {
    clearTimeout(this.#timer)
    this.#firesAt = dueAt
    this.#timer = setTimeout(() => this.#fire(), Math.max(1, Math.ceil(dueAt - monotonicNow()))).unref()
  }

  #fire(): void {
    this.#firesAt = Number.POSITIVE_INFINITY
    this.#timer = undefined
    const now = monotonicNow()
    for (let queue = this.#next(); queue !== undefined && queue.nextAt <= now; queue = this.#next()) {
      queue.take()?.onDue(now)
    }
    const nextAt = this.#next()?.nextAt ?? Number.POSITIVE_INFINITY
    if (nextAt < this.#firesAt) this.#fireAt(nextAt)
  }

  #next(): DeadlineQueue | undefined {
    let first: DeadlineQueue | undefined
    for (const queue of this.#queues) if (queue.nextAt < (first?.nextAt ?? Number.POSITIVE_INFINITY)) first = queue
    return first
  }
}

/** A sorted list. Most deadlines are as far away as the last one, so a new one is inserted from the end. */
export class DeadlineQueue {
  #first: Deadline | null = null
  #last: Deadline | null = null
  readonly #onSet: (dueAt: number) => void

  constructor(onSet: (dueAt: number) => void) {
    this.#onSet = onSet
  }

  get nextAt(): number {
    return this.#first === null ? Number.POSITIVE_INFINITY : this.#first.dueAt
  }

  take(): Deadline | null {
    const first = this.#first
    if (first !== null) this.remove(first)
    return first
  }

  set(deadline: Deadline, dueAt: number): void {
    this.remove(deadline)
    let earlier = this.#last
    while (earlier !== null && earlier.dueAt > dueAt) earlier = earlier.earlier
    const later = earlier === null ? this.#first : earlier.later
    deadline.dueAt = dueAt
    deadline.earlier = earlier
    deadline.later = later
    if (earlier === null) this.#first = deadline
    else earlier.later = deadline
    if (later === null) this.#last = deadline
    else later.earlier = deadline
    this.#onSet(dueAt)
  }

  remove(deadline: Deadline): void {
    if (deadline.dueAt === Number.POSITIVE_INFINITY) return
    const { earlier, later } = deadline
    if (earlier === null) this.#first = later
    else earlier.later = later
    if (later === null) this.#last = earlier
    else later.earlier = earlier
    deadline.dueAt = Number.POSITIVE_INFINITY
    deadline.earlier = null
    deadline.later = null
  }
}

/** Whole milliseconds of a monotonic clock: V8 keeps small integers in place, and other numbers as objects. */
export function monotonicNow(): number {
  return Math.floor(performance.now())
}
