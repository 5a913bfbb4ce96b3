import type { IdempotencyError } from '../errors.js'
import { transactionTimedOut } from '../misuse.js'

/** One call by the client, which may go on when the client has stopped waiting for it. */
export class WorkCall {
  /** Resolves when nothing of it runs. */
  readonly settled: Promise<void>
  #running = 0
  #resolve!: () => void

  constructor() {
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  get isRunning(): boolean {
    return this.#running > 0
  }

  /** Settles as `part` does, which is counted until then. */
  includes<Value>(part: () => Promise<Value>): Promise<Value> {
    this.#running++
    const running = part()
    const over = () => {
      if (--this.#running === 0) this.#resolve()
    }
    running.then(over, over)
    return running
  }
}

/**
 * Settles as a statement inside a transaction does; rejects if the database does not answer it in time, because it may never
 * answer. `onLate` is called first.
 *
 * @throws IdempotencyError `transaction_timed_out`
 */
export async function within<Value>(
  limitMs: number,
  statement: Promise<Value>,
  onLate: (error: IdempotencyError) => void,
): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = transactionTimedOut(`The database did not answer within ${limitMs} ms (storeTimeoutMs)`)
      onLate(error)
      reject(error)
    }, limitMs)
  })
  return Promise.race([statement, late]).finally(() => clearTimeout(timer))
}

/** Waiting for the client of a transaction, until it has settled or nobody waits for it any longer. */
export class WaitForClient {
  /** Why nobody waits any longer; `undefined`: somebody does. */
  givenUp: IdempotencyError | undefined
  #onGivenUp: (() => void) | undefined

  /** The first reason counts. */
  giveUp(error: IdempotencyError): void {
    this.givenUp ??= error
    this.#onGivenUp?.()
  }

  /** Settles as the client does, or rejects when nobody waits any longer. */
  until<Value>(client: Promise<Value>): Promise<Value> {
    const givenUp = new Promise<never>((_resolve, reject) => {
      this.#onGivenUp = () => reject(this.givenUp)
    })
    if (this.givenUp !== undefined) this.#onGivenUp?.()
    return Promise.race([client, givenUp])
  }
}
