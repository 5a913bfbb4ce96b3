import type { Phase } from '../protection.js'
import { type Figures, type Ground, measureInRounds } from '../rounds.js'
import type { Services } from '../services.js'
import { differenceOf, spreadOf } from '../statistics.js'
import { spreadCell, type Table } from '../table.js'
import { variantOf } from '../variants.js'

const NAMES = [
  'bare',
  'floor-memory',
  'ours-memory',
  'floor-ioredis',
  'ours-ioredis',
  'floor-node-redis',
  'ours-node-redis',
]

/** What a lone client waits for longer than without protection. */
export async function latencyTable(services: Services, ground: Ground, seconds: number): Promise<Table> {
  const rows: string[][] = []
  for (const phase of ['first', 'replay'] as const) rows.push(...(await rowsOf(phase, services, ground, seconds)))
  return {
    title: 'Latency that a lone client sees (one connection)',
    columns: ['', 'phase', 'p50 ms', 'added to bare, p50', 'p99 ms', 'added to bare, p99'],
    rows,
    notes: ['Added: the difference to unprotected Express in the same round.'],
  }
}

async function rowsOf(phase: Phase, services: Services, ground: Ground, seconds: number): Promise<string[][]> {
  const candidates = await Promise.all(
    NAMES.map(async (name) => ({ name, service: await services.of(name), phase, seconds, connections: 1 })),
  )
  const figures = await measureInRounds(`latency, ${phase}`, candidates, ground)
  const bare = figures.get('bare') as Figures
  return NAMES.map((name) => {
    const { p50Ms, p99Ms } = figures.get(name) as Figures
    return [
      variantOf(name).label,
      phase,
      spreadCell(spreadOf(p50Ms), 3),
      spreadCell(differenceOf(p50Ms, bare.p50Ms), 3),
      spreadCell(spreadOf(p99Ms), 3),
      spreadCell(differenceOf(p99Ms, bare.p99Ms), 3),
    ]
  })
}
