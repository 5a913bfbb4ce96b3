/** How the time of one store passes. */
export interface TrialClock {
  /** Is over after `pass()`. */
  readonly shortMs: number
  /** Lets `shortMs` pass: on the store's clock if it can be moved, else really. */
  pass(): Promise<void>
  /** Moves the store's clock on by `ms`, however long; where it cannot be moved, lets `shortMs` pass really. */
  leap(ms: number): Promise<void>
  /** Lets other work go first: by a real clock a turn of the event loop. */
  turn(): Promise<void>
  /**
   * Runs steps that only tell something if less than `ms` have passed, as often as it takes, `ms` doubled each time;
   * `early` lets the greater part of `ms` pass, and no more; `late` lets the rest pass. What the steps resolve with runs
   * once, in the end.
   */
  before(steps: (ms: number, early: Pause, late: Pause) => Promise<() => void | Promise<void>>): Promise<void>
}

type Pause = () => Promise<void>

const REAL_SHORT_MS = 50
/** Timers fire a little early or late, and a server's clock ticks apart from ours. */
const REAL_MARGIN_MS = 25

/** With `advance`, the store's clock is moved; without it, time passes really. */
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
        if (advance === undefined && performance.now() - startedAt >= ms) continue
        await conclude()
        return
      }
    },
  }
}
