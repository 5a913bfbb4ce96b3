import { Buffer } from 'node:buffer'
import type { machine, RecordedResult, StoredStep } from '../../src/core/index.js'
import { DamagedRowError, toBuffer } from './row.js'

type StoredRecord = machine.StoredRecord
export type StoredSteps = readonly StoredStep[] | undefined

/** What is recorded of a step; `null`: it is not done. */
export function findRecordedResult(steps: StoredSteps, label: string): RecordedResult {
  const recorded = steps?.find((step) => step.label === label && step.state === 'done')
  return recorded === undefined ? null : { result: recorded.result }
}

/** What the column holds, as JSON; results in base64. */
interface StepsColumn {
  readonly steps: readonly (readonly [
    label: string,
    state: StoredStep['state'],
    order: number,
    result: string | null,
  ])[]
  readonly rerun: boolean
}

/** The column of a record's steps, and of an operator's mark; `null` if there are none. */
export function encodeSteps(record: StoredRecord): Buffer | null {
  if (record.state === 'completed') return null
  return encodeStepsColumn(record.steps, record.state === 'failed' && record.rerun === true)
}

export function encodeStepsColumn(recorded: StoredSteps, rerun: boolean): Buffer | null {
  const steps = (recorded ?? []).map(({ label, state, order, result }) => {
    const bytes = result && toBuffer(result).toString('base64')
    return [label, state, order, bytes] as const
  })
  if (steps.length === 0 && !rerun) return null
  return Buffer.from(JSON.stringify({ steps, rerun } satisfies StepsColumn))
}

/**
 * Whether a statement, in which a byte takes two, has room for the steps of a record. The rest of it is for its other columns, and
 * for steps that are to begin.
 */
export function areStepsWithinLimit(record: StoredRecord | null, maxStatementBytes: number): boolean {
  if (record === null || maxStatementBytes === Number.POSITIVE_INFINITY) return true
  return 2 * (encodeSteps(record)?.byteLength ?? 0) <= maxStatementBytes * STEPS_SHARE
}

const STEPS_SHARE = 7 / 8

/**
 * What the column holds. No steps are `undefined`.
 *
 * @throws DamagedRowError
 */
export function parseStepsColumn(column: unknown): { readonly steps: StoredSteps; readonly rerun: boolean } {
  if (column === null || column === undefined) return { steps: undefined, rerun: false }
  const { steps: kept, rerun } = parseStepsJson(column)
  const steps = kept.map(([label, state, order, result]) => {
    return { label, state, order, result: result === null ? null : Buffer.from(result, 'base64') }
  })
  return { steps: steps.length === 0 ? undefined : steps, rerun }
}

function parseStepsJson(column: unknown): StepsColumn {
  try {
    const kept = JSON.parse(Buffer.from(column as Uint8Array).toString()) as StepsColumn
    if (kept.steps.every(isStep)) return kept
  } catch {} // Not the parser's own error, which would quote a result.
  throw new DamagedRowError('steps')
}

function isStep([label, state, order, result]: StepsColumn['steps'][number]): boolean {
  return (
    typeof label === 'string' &&
    ['begun', 'done', 'undone'].includes(state) &&
    Number.isInteger(order) &&
    (result === null || typeof result === 'string')
  )
}
