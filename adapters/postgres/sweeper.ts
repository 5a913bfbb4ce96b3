import type { PostgresStoreError } from './errors.js'
import { type Row, text } from './reply.js'
import type { Statement } from './statement.js'
import type { Statements } from './statements.js'

/** What a sweeper needs. */
export interface Sweeping {
  readonly statements: Statements
  run(statement: Statement): Promise<Row>
  /** Whether the application closed the client: sweeping then stops. */
  isOver(): boolean
  onFailure(error: PostgresStoreError): void
  readonly pace?: Pace
}

export interface Pace {
  /** The pause between two steps. */
  readonly pauseMs: number
  /**
   * The pause between the last page and the first; also how often a process checks whether the sweeping process has
   * gone.
   */
  readonly restMs: number
}

/** 8 KiB each: a step reads 1 MiB, in some milliseconds. */
export const BLOCKS_A_STEP = 128

const PACE: Pace = { pauseMs: 250, restMs: 60_000 }
/** The pause after a step is at least this many times its duration, so a busy database is not loaded further. */
const PAUSE_PER_STEP = 20

/**
 * Removes expired rows in small steps. A row in the database ensures that one process sweeps at a time. Commands ignore
 * expired rows, whether removed or not. Its timers keep no process alive.
 */
export class Sweeper {
  readonly #sweeping: Sweeping
  readonly #pace: Pace
  #timer: NodeJS.Timeout | undefined

  constructor(sweeping: Sweeping) {
    this.#sweeping = sweeping
    this.#pace = sweeping.pace ?? PACE
  }

  /** Starts sweeping in the background; further calls change nothing. */
  start(): void {
    // Random, so that processes that start together do not sweep together.
    this.#timer ??= this.#after(this.#pace.restMs * Math.random())
  }

  /** Sweeps the whole table now. Returns how many rows were removed. */
  async sweepAll(): Promise<number> {
    const { statements, run } = this.#sweeping
    let removed = 0
    let block: number | null = 0
    while (block !== null) {
      const row = await run(statements.sweep(block, BLOCKS_A_STEP))
      removed += Number(text(row, 'removed'))
      block = row.block === null ? null : Number(text(row, 'block'))
    }
    return removed
  }

  #after(ms: number): NodeJS.Timeout {
    return setTimeout(() => void this.#step(), Math.ceil(ms)).unref()
  }

  async #step(): Promise<void> {
    const { statements, run, isOver, onFailure } = this.#sweeping
    const { pauseMs, restMs } = this.#pace
    if (isOver()) return
    const startedAt = performance.now()
    let nextMs = restMs
    try {
      const row = await run(statements.sweepInTurn(BLOCKS_A_STEP, pauseMs, restMs))
      const isOurs = text(row, 'turn') === 'ours'
      if (isOurs) nextMs = Math.max(pauseMs, (performance.now() - startedAt) * PAUSE_PER_STEP)
    } catch (error) {
      if (isOver()) return
      onFailure(error as PostgresStoreError)
    }
    this.#timer = this.#after(nextMs)
  }
}
