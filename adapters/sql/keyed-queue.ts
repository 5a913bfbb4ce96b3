/** How long a command that hangs keeps the next one waiting. */
const LONGEST_TURN_MS = 500

/**
 * Sends commands for one record one after another. Steps of a run may run side by side, and each command of theirs that another one
 * overtakes must read the row again: many at once would overtake each other until their time limits.
 */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<void>>()

  async runInTurn<Reply>(key: string, command: () => Promise<Reply>): Promise<Reply> {
    const before = this.#last.get(key)
    let over!: () => void
    const turn = new Promise<void>((resolve) => {
      over = resolve
    })
    this.#last.set(key, turn)
    await before
    const timer = setTimeout(over, LONGEST_TURN_MS).unref()
    try {
      return await command()
    } finally {
      clearTimeout(timer)
      over()
      if (this.#last.get(key) === turn) this.#last.delete(key)
    }
  }
}
