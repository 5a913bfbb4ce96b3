import { AsyncResource } from 'node:async_hooks'
import { isBusy, storeError } from './errors.js'

interface Waiting {
  /** Tries it again, in its own request's async context: it may be the application's work, and the timer is another's. */
  attempt(): void
  refuse(error: unknown): void
  readonly until: number
}

/** How long the first in line pauses between two tries: initially, and at most. */
const FIRST_PAUSE_MS = 1
const MOST_PAUSE_MS = 25

/**
 * Commands that wait for other connections, first come, first served. SQLite has no queue: if many commands tried
 * independently, each would block the process for SQLite's short wait. Only the first one tries, by a timer, which
 * keeps no process alive.
 */
export class WaitingLine {
  readonly #waitMs: number
  readonly #line: Waiting[] = []
  #pauseMs = FIRST_PAUSE_MS

  /** `waitMs`: the longest that a command waits. */
  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  /**
   * Runs a command now, or after those that are waiting.
   *
   * @throws SqliteStoreError as the promise's rejection.
   */
  async run<Result>(command: () => Result): Promise<Result> {
    const until = performance.now() + this.#waitMs
    if (this.#line.length === 0) {
      try {
        return command()
      } catch (error) {
        if (!isBusy(error)) throw storeError(error)
      }
    }
    return new Promise((resolve, reject) => {
      const attempt = AsyncResource.bind(() => resolve(command()), 'once-per-key')
      this.#line.push({ attempt, refuse: (error) => reject(storeError(error)), until })
      if (this.#line.length === 1) this.#tryIn(FIRST_PAUSE_MS)
    })
  }

  #tryIn(pauseMs: number): void {
    this.#pauseMs = pauseMs
    // Random, so that competing processes do not collide again.
    setTimeout(() => this.#tryHead(), pauseMs * (0.5 + Math.random())).unref()
  }

  #tryHead(): void {
    const head = this.#line[0] as Waiting
    try {
      head.attempt()
    } catch (error) {
      if (isBusy(error) && performance.now() < head.until) {
        this.#tryIn(Math.min(this.#pauseMs * 2, MOST_PAUSE_MS))
        return
      }
      head.refuse(error)
    }
    this.#line.shift()
    // Lets other work run between two commands.
    if (this.#line.length > 0) this.#tryIn(0)
  }
}
