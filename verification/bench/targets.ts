import type { RoundTrips } from './round-trips.js'
import type { Traffic, TrafficRow } from './sections/traffic.js'
import type { Spread } from './statistics.js'
import { spreadCell, type Table } from './table.js'

/** What was measured of what there are targets for; what was not asked for is absent. */
export interface Measured {
  readonly traffic: readonly Traffic[]
  readonly roundTrips?: ReadonlyMap<string, RoundTrips> | undefined
}

const TIMES_BARE = { first: 1.3, replay: 1.05 }
const TIMES_FLOOR = { first: 1.35, replay: 1.2 }

/** The targets, and by how much each is met or missed. */
export function targetsTable({ traffic, roundTrips }: Measured): Table {
  const rows: string[][] = []
  const compare = (what: string, target: number, seen: Spread | null | undefined): void => {
    if (seen === undefined || seen === null) return
    rows.push([what, `≤ ${target.toFixed(2)}`, spreadCell(seen, 2), seen.median <= target ? 'yes' : 'NO'])
  }
  for (const { phase, node, rows: measured } of traffic) {
    const where = `${phase}, Node ${node.version}`
    compare(`memory, ${where}: × Express`, TIMES_BARE[phase], find(measured, 'ours-memory')?.timesBare)
    for (const client of ['ioredis', 'ioredis-auto', 'node-redis']) {
      compare(`${client}, ${where}: × floor`, TIMES_FLOOR[phase], find(measured, `ours-${client}`)?.timesFloor)
    }
    const leader = fastestPeer(measured)
    const ours = find(measured, 'ours-memory')
    if (leader === undefined || ours === undefined) continue
    const [most, seen] = [leader.cpuMicros.median, ours.cpuMicros.median]
    const met = seen <= most ? 'yes' : `NO (${leader.variant.label})`
    rows.push([`memory, ${where}: the fastest peer`, `≤ ${most.toFixed(1)} µs`, `${seen.toFixed(1)} µs`, met])
  }
  for (const client of ['ioredis', 'ioredis-auto', 'node-redis']) {
    const counted = roundTrips?.get(`ours-${client}`)
    if (counted === undefined) continue
    const { first, replay, refusal, failure } = counted
    const seen = `${first}, ${replay}, ${refusal}, ${failure}`
    const title = `Redis commands, ${client}: first, replay, refusal, failure`
    rows.push([title, ROUND_TRIPS, seen, seen === ROUND_TRIPS ? 'yes' : 'NO'])
  }
  return { title: 'Targets', columns: ['', 'target', 'seen', 'met'], rows, notes: [] }
}

/** One for a claim or a refusal, one to complete, one to release. */
const ROUND_TRIPS = '2, 1, 1, 2'

function find(rows: readonly TrafficRow[], name: string): TrafficRow | undefined {
  return rows.find(({ variant }) => variant.name === name)
}

function fastestPeer(rows: readonly TrafficRow[]): TrafficRow | undefined {
  const peers = rows.filter(({ variant }) => variant.kind === 'peer' && variant.store === 'memory' && !variant.bare)
  return peers.toSorted((a, b) => a.cpuMicros.median - b.cpuMicros.median)[0]
}
