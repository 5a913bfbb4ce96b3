/** A clock that moves when it is told to. */
export interface FakeClock {
  readonly now: () => number
  readonly advance: (ms: number) => void
}

export function fakeClock(startMs = 1): FakeClock {
  let ms = startMs
  return {
    now: () => ms,
    advance(by) {
      ms += by
    },
  }
}
