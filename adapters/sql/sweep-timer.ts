interface BackgroundSweep {
  /** Makes one step, if no other process has the turn. Resolves with whether it was this one's. */
  step(pace: SweepIntervals): Promise<boolean>
  /** Whether the application closed the client: sweeping then stops. */
  isClientClosed(): boolean
  onFailure(error: unknown): void
}

export interface SweepIntervals {
  readonly pauseMs: number
  /**
   * The pause between the end of the table and its beginning; also how often a process checks whether the sweeping process has
   * gone.
   */
  readonly restMs: number
}

const PACE: SweepIntervals = { pauseMs: 250, restMs: 60_000 }
/** The pause after a step is at least this many times its duration, so a busy database is not loaded further. */
const PAUSE_PER_STEP = 20

/** Sweeps in small steps, one process at a time. It keeps no process alive. */
export class SweepTimer {
  readonly #sweep: BackgroundSweep
  readonly #pace: SweepIntervals
  #timer: NodeJS.Timeout | undefined

  constructor(sweep: BackgroundSweep, pace: SweepIntervals = PACE) {
    this.#sweep = sweep
    this.#pace = pace
  }

  /** Further calls change nothing. */
  start(): void {
    // Random, so that processes that start together do not sweep together.
    this.#timer ??= this.#scheduleStep(this.#pace.restMs * Math.random())
  }

  #scheduleStep(ms: number): NodeJS.Timeout {
    return setTimeout(() => void this.#runStep(), Math.ceil(ms)).unref()
  }

  async #runStep(): Promise<void> {
    const { pauseMs, restMs } = this.#pace
    if (this.#sweep.isClientClosed()) return
    const startedAt = performance.now()
    let nextMs = restMs
    try {
      const isOurs = await this.#sweep.step(this.#pace)
      if (isOurs) nextMs = Math.max(pauseMs, (performance.now() - startedAt) * PAUSE_PER_STEP)
    } catch (error) {
      if (this.#sweep.isClientClosed()) return
      this.#sweep.onFailure(error)
    }
    this.#timer = this.#scheduleStep(nextMs)
  }
}
