/** How time passes for one store under test. */
export interface TrialClock {
  /** A duration that `pass()` exceeds. */
  readonly shortMs: number
  /** Waits `shortMs`: on the store's clock if it can be advanced, else really. */
  pass(): Promise<void>
  /** Advances the store's clock by `ms`, however long; if it cannot be advanced, really waits `shortMs`. */
  leap(ms: number): Promise<void>
  /** Lets other work run first: with a real clock, one turn of the event loop. */
  turn(): Promise<void>
  /**
   * Runs steps that are only conclusive if less than `ms` have passed. Repeats them with `ms` doubled until they are.
   * `early` waits most of `ms`; `late` waits the rest. The function that the steps resolve with runs once, at the end.
   */
  before(steps: (ms: number, early: Pause, late: Pause) => Promise<() => void | Promise<void>>): Promise<void>
}

type Pause = () => Promise<void>

const REAL_SHORT_MS = 50
/** Timers fire a little early or late, and the server's clock differs from ours. */
const REAL_MARGIN_MS = 25
/** A store's clock counts whole milliseconds, and is another than ours: so close to the end it may be over there. */
const NEARLY_OVER_MS = 5

/** With `advance`, the store's clock is advanced; without it, real time passes. */
export function trialClock(advance: ((ms: number) => unknown) | undefined): TrialClock {
  const shortMs = advance === undefined ? REAL_SHORT_MS : 1_000

  async function passing(ms: number): Promise<void> {
    if (advance === undefined) await new Promise((resolve) => setTimeout(resolve, ms))
    else await advance(ms)
  }

  const pass = () => passing(advance === undefined ? shortMs + REAL_MARGIN_MS : shortMs)

  return {
    shortMs,
    pass,
    leap: (ms) => (advance === undefined ? pass() : passing(ms)),
    async turn() {
      if (advance === undefined) await new Promise((resolve) => setImmediate(resolve))
    },
    async before(steps) {
      for (let ms = advance === undefined ? 200 : 1_000; ; ms *= 2) {
        const startedAt = performance.now()
        const early = () => passing(advance === undefined ? ms * 0.75 : ms - 1)
        const late = () => passing(advance === undefined ? ms * 0.25 + REAL_MARGIN_MS : 1)
        const conclude = await steps(ms, early, late)
        if (advance === undefined && performance.now() - startedAt >= ms - NEARLY_OVER_MS) continue
        await conclude()
        return
      }
    },
  }
}
