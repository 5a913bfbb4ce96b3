import { measureAfresh } from '../afresh.js'
import type { MeasuredNode } from '../nodes.js'
import type { Phase } from '../protection.js'
import type { Figures, Ground } from '../rounds.js'
import { differenceOf, ratioOf, type Spread, spreadOf } from '../statistics.js'
import { spreadCell, type Table } from '../table.js'
import type { Variant } from '../variants.js'

/** What one variant costs on one Node. */
export interface TrafficRow {
  readonly variant: Variant
  readonly cpuMicros: Spread
  readonly timesBare: Spread
  /** What is added to the same framework, unprotected, in microseconds a request. */
  readonly extraMicros: Spread
  /** `null`: it is one, or has none. */
  readonly timesFloor: Spread | null
  readonly mistakes: number
}

/** What all variants cost in one phase, on one Node. */
export interface Traffic {
  readonly phase: Phase
  readonly node: MeasuredNode
  readonly rows: readonly TrafficRow[]
  readonly rounds: number
}

export async function measureTraffic(
  phase: Phase,
  variants: readonly Variant[],
  nodes: readonly MeasuredNode[],
  ground: Ground,
  seconds: number,
): Promise<readonly Traffic[]> {
  const plans = variants.map(({ name }) => ({ name, variant: name, phase, seconds }))
  const figures = await measureAfresh(phase, plans, nodes, ground)
  return nodes.map((node) => {
    const ofNode = figures.get(node) as Map<string, Figures>
    return { phase, node, rows: rowsOf(variants, ofNode), rounds: [...ofNode.values()][0]?.cpuMicros.length ?? 0 }
  })
}

function rowsOf(variants: readonly Variant[], figures: ReadonlyMap<string, Figures>): readonly TrafficRow[] {
  const of = (name: string) => figures.get(name) as Figures
  return variants.map((variant) => {
    const { cpuMicros, mistakes } = of(variant.name)
    const bare = of(variant.bare ?? 'bare').cpuMicros
    const floor = variant.floor === undefined ? undefined : figures.get(variant.floor)
    return {
      variant,
      cpuMicros: spreadOf(cpuMicros),
      timesBare: ratioOf(cpuMicros, bare),
      extraMicros: differenceOf(cpuMicros, bare),
      timesFloor: floor === undefined ? null : ratioOf(cpuMicros, floor.cpuMicros),
      mistakes,
    }
  })
}

/** One table for what stays in the process, which is compared with the framework alone, and one for Redis, with its floors. */
export function trafficTables(
  measured: readonly Traffic[],
  failings: ReadonlyMap<string, readonly string[]>,
): readonly Table[] {
  return (['memory', 'redis'] as const).map((store) => trafficTable(store, measured, failings))
}

function trafficTable(
  store: 'memory' | 'redis',
  measured: readonly Traffic[],
  failings: ReadonlyMap<string, readonly string[]>,
): Table {
  const [first] = measured as readonly [Traffic]
  const isShown = ({ variant }: TrafficRow) => variant.store === store || variant.kind === 'bare'
  const names = first.rows.filter(isShown).map(({ variant }) => variant)
  const against = store === 'memory' ? '× unprotected' : '× floor'
  return {
    title: `${TITLES[first.phase]}, ${store === 'memory' ? 'in memory' : 'in Redis'}`,
    columns: ['', ...measured.flatMap(({ node }) => [`Node ${node.version}: ${against}`, '+ µs']), 'gets wrong'],
    rows: names.map((variant) => {
      const rows = measured.map(({ rows }) => rows.find((row) => row.variant === variant) as TrafficRow)
      const mistakes = rows.reduce((sum, row) => sum + row.mistakes, 0)
      const wrong = [...(failings.get(variant.name) ?? []), ...(mistakes > 0 ? [`${mistakes} wrong answers`] : [])]
      return [variant.label, ...rows.flatMap((row) => cellsOf(row, store)), wrong.join(', ')]
    }),
    notes: [...NOTES[first.phase], `Rounds: ${first.rounds}.`],
  }
}

function cellsOf({ variant, cpuMicros, timesBare, timesFloor, extraMicros }: TrafficRow, store: string): string[] {
  if (variant.kind === 'bare') return [`1 = ${cpuMicros.median.toFixed(0)} µs`, '']
  const times = store === 'memory' ? timesBare : timesFloor
  const none = variant.kind === 'floor' ? '1.00' : '–'
  return [times === null ? none : spreadCell(times, 2), spreadCell(extraMicros, 0)]
}

const TITLES = { first: 'First execution', replay: 'Replay' }

const ALL = [
  'CPU (user and system) of the server process by request; median of the rounds (least–most), another process in each.',
  '+ µs: what is added to the same framework, unprotected, which runs the same handler.',
]

const NOTES = {
  first: [
    ...ALL,
    'Floors: one Map look-up and one set; `SET … NX GET` and `SET`. They protect from a late retry alone.',
  ],
  replay: [...ALL, 'Floors: one Map look-up; one `GET`. Unprotected, the handler runs again.'],
}
