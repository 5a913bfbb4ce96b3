import { awaited } from './awaited.js'

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

  /** Resolves when nothing is in progress. */
  idle(): Promise<void> {
    if (this.#active === 0) return Promise.resolve()
    return awaited(new Promise((resolve) => this.#whenIdle.push(resolve)))
  }
}
