import type { Phase } from '../protection.js'
import { type Figures, type Ground, inTurn, measureInRounds } from '../rounds.js'
import { startedOnDemand } from '../services.js'
import { ratioOf, type Spread, spreadOf } from '../statistics.js'
import { countCell, spreadCell, type Table } from '../table.js'
import { VARIANTS, type Variant } from '../variants.js'

/** What one variant costs. */
export interface TrafficRow {
  readonly variant: Variant
  readonly cpuMicros: Spread
  readonly timesBare: Spread
  /** `null`: it is one, or has none. */
  readonly timesFloor: Spread | null
  readonly perSecond: Spread
  readonly p50Ms: Spread
  readonly p99Ms: Spread
  readonly mistakes: number
}

/**
 * Every variant under the same load. In each round by processes of its own: two processes of one program differ, by how the
 * engine compiled it, as much as two variants do.
 */
export async function measureTraffic(phase: Phase, ground: Ground, seconds: number): Promise<readonly TrafficRow[]> {
  const figures = new Map<string, Figures>()
  for (let round = 0; round < ground.rounds; round++) {
    const services = startedOnDemand(ground.redisPort)
    try {
      const candidates = await Promise.all(
        inTurn(VARIANTS, round).map(async ({ name }) => ({ name, service: await services.of(name), phase, seconds })),
      )
      await measureInRounds(`${phase} ${round + 1} of ${ground.rounds}`, candidates, { ...ground, rounds: 1 }, figures)
    } finally {
      await services.end()
    }
  }
  const of = (name: string) => figures.get(name) as Figures
  return VARIANTS.map((variant) => {
    const { cpuMicros, perSecond, p50Ms, p99Ms, mistakes } = of(variant.name)
    return {
      variant,
      cpuMicros: spreadOf(cpuMicros),
      timesBare: ratioOf(cpuMicros, of('bare').cpuMicros),
      timesFloor: variant.floor === undefined ? null : ratioOf(cpuMicros, of(variant.floor).cpuMicros),
      perSecond: spreadOf(perSecond),
      p50Ms: spreadOf(p50Ms),
      p99Ms: spreadOf(p99Ms),
      mistakes,
    }
  })
}

export function trafficTable(
  phase: Phase,
  rows: readonly TrafficRow[],
  failings: ReadonlyMap<string, readonly string[]>,
): Table {
  return {
    title: TITLES[phase],
    columns: ['', 'CPU µs a request', '× bare', '× floor', 'requests/s', 'p50 ms', 'p99 ms', 'fails'],
    rows: rows.map(({ variant, cpuMicros, timesBare, timesFloor, perSecond, p50Ms, p99Ms, mistakes }) => [
      variant.label,
      spreadCell(cpuMicros, 1),
      spreadCell(timesBare, 2),
      timesFloor === null ? '' : spreadCell(timesFloor, 2),
      countCell(perSecond.median),
      p50Ms.median.toFixed(2),
      spreadCell(p99Ms, 2),
      [...(failings.get(variant.name) ?? []), ...(mistakes > 0 ? [`${mistakes} wrong answers under load`] : [])].join(
        ', ',
      ),
    ]),
    notes: NOTES[phase],
  }
}

const TITLES = {
  first: 'First execution: each request with a key of its own',
  replay: 'Replay: answers that are stored',
}

const ALL = [
  'CPU: user and system time of the server process, by request; another process in each round. Median of the rounds (least–most).',
  '× bare: against unprotected Express running the same handler. × floor: against the least with the same store and client.',
]

const NOTES = {
  first: [
    ...ALL,
    'Floors: one Map look-up and one set; `SET … NX GET` and `SET`. They protect from nothing but a late retry.',
  ],
  replay: [...ALL, 'Floors: one Map look-up; one `GET`. Unprotected Express runs its handler again.'],
}
