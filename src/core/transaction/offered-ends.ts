import type { RunEnd } from '../events/refusal.js'
import type { OfferedEnd } from '../run/run-end.js'

/** The ends of the run that are offered to an open transaction, until its outcome is known. */
export class OfferedEnds {
  #first: Offered | undefined
  /** The failure that was offered behind a success: it counts if the success is discarded. */
  #failure: Offered | undefined

  get end(): OfferedEnd | undefined {
    return this.#first?.end
  }

  get areFailed(): boolean {
    return this.#first?.end.answer === null
  }

  /** Resolves with what to send; never if the end was discarded. */
  add(end: OfferedEnd): Promise<RunEnd> {
    if (this.#first === undefined) this.#first = new Offered(end)
    else if (end.answer === null && !this.areFailed) {
      this.#failure ??= new Offered(end)
      return this.#failure.told
    }
    return this.#first.told
  }

  /** The transaction was rolled back, and a success with it. */
  discard(): void {
    this.#first = this.#failure
    this.#failure = undefined
  }

  tell(settled: RunEnd): void {
    this.#first?.tell(settled)
    this.#failure?.tell(settled)
  }
}

class Offered {
  readonly end: OfferedEnd
  readonly told: Promise<RunEnd>
  tell!: (settled: RunEnd) => void

  constructor(end: OfferedEnd) {
    this.end = end
    this.told = new Promise((resolve) => {
      this.tell = resolve
    })
  }
}
