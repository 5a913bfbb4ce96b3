import { AsyncResource } from 'node:async_hooks'
import { isBusy, SqliteStoreError, storeError } from './errors.js'

interface WaitingCommand {
  /** Tries it again, in its own request's async context: it may be the application's work, and the timer is another's. */
  attempt(): void
  refuse(error: unknown): void
  readonly until: number
  readonly isUrgent: boolean
}

/** How long the first in the queue pauses between two tries: initially, and at most. */
const FIRST_PAUSE_MS = 1
const MOST_PAUSE_MS = 25

const NO_TURN =
  'Other commands kept the connection busy for longer than `busyTimeoutMs`: this one was not run. The disk may be slow, or the ' +
  'commands too many for one that is synced behind each.'

/**
 * Commands that wait for other connections, first come, first served. SQLite has no queue: if many commands tried
 * independently, each would block the process for SQLite's short wait. Only the first one tries, by a timer, which
 * keeps no process alive.
 */
export class CommandQueue {
  readonly #waitMs: number
  readonly #queue: WaitingCommand[] = []
  #pauseMs = FIRST_PAUSE_MS

  /** `waitMs`: the longest that a command waits. */
  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  /**
   * Runs a command now, or after those that are waiting. `isUrgent`: late, it is worth nothing, or is sent again.
   *
   * @throws SqliteStoreError as the promise's rejection.
   */
  async run<Result>(command: () => Result, isUrgent = false): Promise<Result> {
    const until = performance.now() + this.#waitMs
    if (this.#queue.length === 0) {
      try {
        return command()
      } catch (error) {
        if (!isBusy(error)) throw storeError(error)
      }
    }
    return new Promise((resolve, reject) => {
      const attempt = AsyncResource.bind(() => resolve(command()), 'once-per-key')
      this.#queue.push({ attempt, refuse: (error) => reject(storeError(error)), until, isUrgent })
      if (this.#queue.length === 1) this.#scheduleTry(FIRST_PAUSE_MS)
    })
  }

  #scheduleTry(pauseMs: number): void {
    this.#pauseMs = pauseMs
    // Random, so that competing processes do not collide again.
    setTimeout(() => this.#tryHead(), pauseMs * (0.5 + Math.random())).unref()
  }

  #tryHead(): void {
    const head = this.#queue[0] as WaitingCommand
    try {
      head.attempt()
    } catch (error) {
      if (isBusy(error) && performance.now() < head.until) {
        this.#scheduleTry(Math.min(this.#pauseMs * 2, MOST_PAUSE_MS))
        return
      }
      head.refuse(error)
    }
    this.#queue.shift()
    this.#refuseLate()
    // Lets other work run between two commands.
    if (this.#queue.length > 0) this.#scheduleTry(0)
  }

  /**
   * One that was given up must not take the turn of one that is waited for: after the database was locked, clients that retry would keep
   * the queue busy for ever with claims that come too late, and with their releases.
   */
  #refuseLate(): void {
    for (;;) {
      const head = this.#queue[0]
      if (head === undefined || !head.isUrgent || performance.now() < head.until) return
      head.refuse(new SqliteStoreError('database_busy', NO_TURN))
      this.#queue.shift()
    }
  }
}
