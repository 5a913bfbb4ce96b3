import { type Pace, SweepTimer } from '../sql/sweep-timer.js'
import type { PostgresStoreError } from './errors.js'
import { type Row, text } from './reply.js'
import type { Statement, Statements } from './statements.js'

/** What a sweeper needs. */
interface Sweeping {
  readonly statements: Statements
  run(statement: Statement): Promise<Row>
  /** Whether the application closed the client: sweeping then stops. */
  isOver(): boolean
  onFailure(error: PostgresStoreError): void
  readonly pace?: Pace
}

/** 8 KiB each: a step reads 1 MiB, in some milliseconds. */
export const BLOCKS_A_STEP = 128

/**
 * Removes expired rows in small steps. A row in the database ensures that one process sweeps at a time. Commands ignore
 * expired rows, whether removed or not. Its timers keep no process alive.
 */
export class Sweeper {
  readonly #sweeping: Sweeping
  readonly #timer: SweepTimer

  constructor(sweeping: Sweeping) {
    this.#sweeping = sweeping
    const { statements, run, isOver, onFailure, pace } = sweeping
    this.#timer = new SweepTimer(
      {
        async step({ pauseMs, restMs }) {
          const row = await run(statements.sweepInTurn(BLOCKS_A_STEP, pauseMs, restMs))
          return text(row, 'turn') === 'ours'
        },
        isOver,
        onFailure: (error) => onFailure(error as PostgresStoreError),
      },
      pace,
    )
  }

  /** Starts sweeping in the background; further calls change nothing. */
  start(): void {
    this.#timer.start()
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
}
