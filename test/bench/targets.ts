import type { RoundTrips } from './round-trips.js'
import type { TrafficRow } from './sections/traffic.js'
import type { Spread } from './statistics.js'
import { spreadCell, type Table } from './table.js'

/** What was measured of what there are targets for; what was not asked for is absent. */
export interface Measured {
  readonly first?: readonly TrafficRow[] | undefined
  readonly replay?: readonly TrafficRow[] | undefined
  readonly decideAndSettle?: Spread | undefined
  readonly withMemoryBytes?: number | undefined
  readonly recordsInMemory?: Spread | undefined
  readonly roundTrips?: ReadonlyMap<string, RoundTrips> | undefined
}

/** The targets, and by how much each is met or missed. */
export function targetsTable(measured: Measured): Table {
  const { first, replay, decideAndSettle, withMemoryBytes, recordsInMemory, roundTrips } = measured
  const rows: string[][] = []
  const compare = (what: string, target: number, seen: Spread | undefined, digits = 2): void => {
    if (seen !== undefined)
      rows.push([what, `≤ ${target}`, spreadCell(seen, digits), seen.median <= target ? 'yes' : 'NO'])
  }
  compare('CPU a request, first, memory: × bare', 1.12, find(first, 'ours-memory')?.timesBare)
  compare('CPU a request, replay, memory: × bare', 1, find(replay, 'ours-memory')?.timesBare)
  for (const client of ['ioredis', 'ioredis-auto', 'node-redis']) {
    compare(`CPU a request, first, ${client}: × floor`, 1.1, find(first, `ours-${client}`)?.timesFloor ?? undefined)
    compare(`CPU a request, replay, ${client}: × floor`, 1.05, find(replay, `ours-${client}`)?.timesFloor ?? undefined)
  }
  for (const [phase, traffic] of [['first', first] as const, ['replay', replay] as const]) {
    for (const [own, store] of [['ours-memory', 'memory'] as const, ['ours-node-redis', 'redis'] as const]) {
      const leader = fastestPeer(traffic, store)
      const ours = find(traffic, own)
      if (leader === undefined || ours === undefined) continue
      rows.push([
        `CPU a request, ${phase}, ${store}: against the peer that needs the least`,
        `< ${leader.cpuMicros.median.toFixed(1)} µs`,
        `${ours.cpuMicros.median.toFixed(1)} µs`,
        ours.cpuMicros.median < leader.cpuMicros.median ? 'yes' : `NO (${leader.variant.label})`,
      ])
    }
  }
  for (const client of ['ioredis', 'ioredis-auto', 'node-redis']) {
    const counted = roundTrips?.get(`ours-${client}`)
    if (counted === undefined) continue
    const { first, replay, refusal, failure } = counted
    const seen = `${first}, ${replay}, ${refusal}, ${failure}`
    const title = `Redis commands, ${client}: first, replay, refusal, failure`
    rows.push([title, ROUND_TRIPS, seen, seen === ROUND_TRIPS ? 'yes' : 'NO'])
  }
  compare('CPU a request, memory: × from the fewest records to the most', 1.1, recordsInMemory)
  compare('decide + settle on memory, µs', 8, decideAndSettle, 1)
  if (withMemoryBytes !== undefined) {
    const kib = withMemoryBytes / 1_024
    rows.push(['once-per-key + memory, minified and gzipped, KiB', '≤ 12', kib.toFixed(1), kib <= 12 ? 'yes' : 'NO'])
  }
  return { title: 'Targets', columns: ['', 'target', 'seen', 'met'], rows, notes: [] }
}

/** One for a claim or a refusal, one to complete, one to release. */
const ROUND_TRIPS = '2, 1, 1, 2'

function find(rows: readonly TrafficRow[] | undefined, name: string): TrafficRow | undefined {
  return rows?.find(({ variant }) => variant.name === name)
}

function fastestPeer(rows: readonly TrafficRow[] | undefined, store: 'memory' | 'redis'): TrafficRow | undefined {
  const peers = rows?.filter(({ variant }) => variant.kind === 'peer' && variant.store === store) ?? []
  return peers.toSorted((a, b) => a.cpuMicros.median - b.cpuMicros.median)[0]
}
