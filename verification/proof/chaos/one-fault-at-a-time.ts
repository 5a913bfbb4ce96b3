/** Lets one fault take its course while no other begins. */
export interface Calm {
  during<T>(work: () => Promise<T>): Promise<T>
  /** Resolves when there is none. */
  over(): Promise<unknown>
}

export function createCalm(): Calm {
  let last: Promise<unknown> = Promise.resolve()
  return {
    during(work) {
      const done = work()
      last = done.catch(() => {})
      return done
    },
    over: () => last,
  }
}
