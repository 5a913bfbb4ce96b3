import type { IdempotencyError } from '../errors.js'

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
