import type { PostgresStoreError } from './errors.js'
import { type Row, text } from './reply.js'
import type { Statement } from './statement.js'
import type { Statements } from './statements.js'

/** What a sweeper does, and when. */
export interface Sweeping {
  readonly statements: Statements
  run(statement: Statement): Promise<Row>
  /** Whether the client was closed by its owner: the end of all sweeping. */
  isOver(): boolean
  onFailure(error: PostgresStoreError): void
  readonly pace?: Pace
}

export interface Pace {
  /** Between two steps. */
  readonly pauseMs: number
  /** Behind the last page, before the first one again; also how soon a process looks whether the one that sweeps is gone. */
  readonly restMs: number
}

/** 8 KiB each: a step is a MiB, some milliseconds. */
export const BLOCKS_A_STEP = 128

const PACE: Pace = { pauseMs: 250, restMs: 60_000 }
/** A step is followed by a pause of at least so many times what it took: of a busy database it takes little. */
const PAUSE_PER_STEP = 20

/**
 * Removes rows whose retention is over, in small steps: of all processes one at a time, as a row of the database says.
 * Whatever it finds, a row that has expired is no record to any command. Its timers keep no process alive.
 */
export class Sweeper {
  readonly #sweeping: Sweeping
  readonly #pace: Pace
  #timer: NodeJS.Timeout | undefined

  constructor(sweeping: Sweeping) {
    this.#sweeping = sweeping
    this.#pace = sweeping.pace ?? PACE
  }

  /** From now on, by itself. Once; later calls change nothing. */
  start(): void {
    // Processes that start together do not look together.
    this.#timer ??= this.#after(this.#pace.restMs * Math.random())
  }

  /** The whole table at once. Returns how many rows were removed. */
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
