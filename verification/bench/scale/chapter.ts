import type { LineChart } from '../chart.js'
import type { Spread } from '../statistics.js'
import type { Table } from '../table.js'

/** What was measured of one thing that grows. */
export interface Chapter {
  /** Of its chart's file. */
  readonly name: string
  readonly heading: string
  /** What the numbers say. */
  readonly sentence: string
  readonly chart: LineChart
  readonly table: Pick<Table, 'columns' | 'rows'>
  /** Where the steps are numbers of keys: how many times as much a first request takes at the last as at the first. */
  readonly growth?: Growth
  /** Of the servers on which it was measured. */
  readonly versions?: readonly string[]
}

export interface Growth {
  readonly times: number
  readonly from: number
  readonly to: number
}

/** `1,000` keys, as a step of a chart and of a table. */
export function toSteps(values: readonly number[], label = formatCount) {
  return values.map((value) => ({ value, label: label(value) }))
}

/** One line for first requests, and one for replays. */
export function toFirstAndReplayLines(ratios: readonly Readonly<Record<'first' | 'replay', Spread>>[]) {
  return [
    { label: 'first request', values: ratios.map(({ first }) => first.median) },
    { label: 'replay', values: ratios.map(({ replay }) => replay.median) },
  ]
}

export function formatCount(value: number): string {
  return value.toLocaleString('en-GB')
}

/** With two significant digits at least. */
export function formatTimes(ratio: number): string {
  return ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2)
}
