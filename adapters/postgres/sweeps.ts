import type { SweepIntervals } from '../sql/sweep-timer.js'
import type { PostgresDatabase } from './database.js'
import { readText } from './reply.js'
import type { Statements } from './statements.js'

type Sender = Pick<PostgresDatabase, 'queryRow'>

/** 8 KiB each: a step reads 1 MiB, in some milliseconds. */
export const BLOCKS_A_STEP = 128

/**
 * One step of the sweep of all processes: a row in the database ensures that one of them sweeps at a time. Resolves with whether it was
 * this one's turn, and there is more.
 */
export async function sweepStepIfDue(database: Sender, statements: Statements, pace: SweepIntervals): Promise<boolean> {
  const { pauseMs, restMs } = pace
  const row = await database.queryRow(statements.sweepInTurn(BLOCKS_A_STEP, pauseMs, restMs))
  return readText(row, 'turn') === 'ours'
}

/** Sweeps the whole table now. Resolves with how many rows were removed. */
export async function sweepAll(database: Sender, statements: Statements): Promise<number> {
  let removed = 0
  for (let block: number | null = 0; block !== null; ) {
    const row = await database.queryRow(statements.sweep(block, BLOCKS_A_STEP))
    removed += Number(readText(row, 'removed'))
    block = row.block === null ? null : Number(readText(row, 'block'))
  }
  return removed
}
