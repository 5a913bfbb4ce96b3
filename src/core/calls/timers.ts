/**
 * Whoever waits for us keeps the process alive; nobody waiting keeps nothing alive.
 *
 * No timer of the library keeps a process alive (`unref`), since most of its work is done for nobody: a renewal, a
 * completion that is retried after its client was answered, a sweep. But where a caller's promise waits, for a store's
 * reply, for another owner's answer, for the lock of a file or for `idle()`, the process must live until that promise is
 * settled: a script that ended before would have lost its result without a word. So each such wait is counted here, and
 * one handle of the process is ref'd exactly while the count is not zero. A new kind of wait needs no more than `awaited`.
 *
 * A run whose work is running is no wait of this kind: what the work waits for keeps the process alive, or nothing does.
 */

/** Taken when the module is loaded: clocks that tests put in its place later keep nothing alive. */
const { setInterval } = globalThis
const LONGEST_MS = 2 ** 31 - 1

let waiting = 0
let handle: NodeJS.Timeout | undefined

/** A caller begins to wait. `waitEnded` must follow. */
export function waitBegan(): void {
  waiting++
  if (waiting > 1) return
  handle ??= setInterval(() => {}, LONGEST_MS)
  handle.ref?.()
}

export function waitEnded(): void {
  waiting--
  if (waiting === 0) handle?.unref?.()
}

/** Keeps the process alive until the promise, for which a caller waits, is settled. Returns it. */
export function keepProcessAlive<Result>(promise: Promise<Result>): Promise<Result> {
  waitBegan()
  promise.then(waitEnded, waitEnded)
  return promise
}

/** Counts the work that must end before a store's client may be closed. */
export class Activity {
  #active = 0
  #whenIdle: (() => void)[] = []

  start(): void {
    this.#active++
  }

  end(): void {
    this.#active--
    if (this.#active > 0) return
    for (const resolve of this.#whenIdle) resolve()
    this.#whenIdle = []
  }

  waitUntilIdle(): Promise<void> {
    if (this.#active === 0) return Promise.resolve()
    return keepProcessAlive(new Promise((resolve) => this.#whenIdle.push(resolve)))
  }
}

/** In milliseconds; changes of the system's clock do not move it. */
export function getMonotonicMs(): number {
  return performance.now()
}

/** Keeps no process alive. */
export function startTimer(run: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(run, Math.max(1, Math.ceil(ms))).unref()
}
